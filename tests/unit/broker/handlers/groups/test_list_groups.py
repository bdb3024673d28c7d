"""ListGroups: all groups, or filtered by state and type."""

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.list_groups import ListGroupsRequest
from tests.support.groups import commit_request, stable_group
from tests.support.streams_groups import StreamsMember, stateless
from tests.support.virtual_broker import VirtualBroker


@pytest.mark.parametrize("version", range(6))
def test_listed_fields_depend_on_the_version(topic: Topic, broker: VirtualBroker, version: int) -> None:
    stable_group(broker, "busy")
    client = broker.client()
    client.call(commit_request(group_id="simple"), 9)
    response = client.call(ListGroupsRequest(), version)
    states = ("Stable", "Empty") if version >= 4 else ("", "")
    group_type = "classic" if version >= 5 else ""
    assert [
        (group.group_id, group.protocol_type, group.group_state, group.group_type) for group in response.groups
    ] == [("busy", "consumer", states[0], group_type), ("simple", "", states[1], group_type)]


FILTERS = {
    "one state": (["Stable"], [], ["busy"]),
    "states in other letter case": ([" stable ", "EMPTY"], [], ["busy", "empty"]),
    "state without groups": (["PreparingRebalance"], [], []),
    "unknown state": (["Whatever"], [], []),
    "type in other letter case": ([], ["Classic"], ["busy", "empty"]),
    "type without groups": ([], ["consumer"], []),
    "unknown type": ([], ["whatever"], []),
    "state and type": (["Empty"], ["classic", "share"], ["empty"]),
}


@pytest.mark.parametrize(("states", "types", "expected"), FILTERS.values(), ids=FILTERS)
def test_groups_are_filtered_by_state_and_type(states: list[str], types: list[str], expected: list[str]) -> None:
    broker = VirtualBroker()
    stable_group(broker, "busy")
    broker.broker.groups.create_classic("empty")
    response = broker.client().call(ListGroupsRequest(states_filter=states, types_filter=types), 5)
    assert [group.group_id for group in response.groups] == expected


def test_the_filter_has_another_name_for_streams_groups_that_are_not_ready(broker: VirtualBroker) -> None:
    StreamsMember(broker, topology=stateless("none")).join()
    filters = (["Not_Ready"], ["NotReady"])
    listed = [broker.client().call(ListGroupsRequest(states_filter=states), 5).groups for states in filters]
    assert [[group.group_state for group in groups] for groups in listed] == [["NotReady"], []]


def test_listing_without_groups_does_not_create_the_offsets_topic(broker: VirtualBroker) -> None:
    assert broker.client().call(ListGroupsRequest(), 5).groups == []
    assert broker.broker.cluster.topics == {}
