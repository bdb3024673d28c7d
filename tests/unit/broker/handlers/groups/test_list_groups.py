"""ListGroups: all groups, or those in some states, of some kinds."""

import pytest

from sluice.protocol.apis.list_groups import ListGroupsRequest
from tests.support.groups import commit_request, stable_group
from tests.support.virtual_broker import VirtualBroker


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed_with_what_the_version_can_tell(version: int) -> None:
    broker = VirtualBroker()
    broker.topic()
    stable_group(broker, "busy")
    client = broker.client()
    client.ask(commit_request(group_id="simple"), 9)
    response = client.ask(ListGroupsRequest(), version)
    states = ("Stable", "Empty") if version >= 4 else ("", "")
    kind = "classic" if version >= 5 else ""
    assert [(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in response.groups] == [
        ("busy", "consumer", states[0], kind),
        ("simple", "", states[1], kind),
    ]


@pytest.mark.parametrize(
    ("states", "kinds", "expected"),
    [
        pytest.param(["Stable"], [], ["busy"], id="one state"),
        pytest.param([" stable ", "EMPTY"], [], ["busy", "empty"], id="states in any spelling"),
        pytest.param(["PreparingRebalance"], [], [], id="a state that no group is in"),
        pytest.param(["Whatever"], [], [], id="a state that nobody knows"),
        pytest.param([], ["Classic"], ["busy", "empty"], id="a kind in any spelling"),
        pytest.param([], ["consumer"], [], id="a kind that no group is of"),
        pytest.param([], ["whatever"], [], id="a kind that nobody knows"),
        pytest.param(["Empty"], ["classic", "share"], ["empty"], id="both"),
    ],
)
def test_groups_are_filtered(states: list[str], kinds: list[str], expected: list[str]) -> None:
    broker = VirtualBroker()
    stable_group(broker, "busy")
    broker.broker.groups.create_classic("empty")
    response = broker.client().ask(ListGroupsRequest(states_filter=states, types_filter=kinds), 5)
    assert [group.group_id for group in response.groups] == expected


def test_there_may_be_none() -> None:
    broker = VirtualBroker()
    assert broker.client().ask(ListGroupsRequest(), 5).groups == []
    assert broker.broker.cluster.topics == {}
