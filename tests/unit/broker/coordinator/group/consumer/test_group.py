"""Consumer groups in other APIs: offset commit and fetch, list, describe and delete."""

from typing import Any

import pytest

from sluice.protocol.apis.list_groups import ListGroupsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import AT_ONCE, ConsumerMember, consumer_group
from tests.support.group_members import joined
from tests.support.groups import delete_offsets_request
from tests.support.virtual_broker import VirtualBroker, broker_with_topic


@pytest.fixture
def broker() -> VirtualBroker:
    return broker_with_topic(AT_ONCE, partitions=4)


def test_list_groups_returns_group_type_and_state(broker: VirtualBroker) -> None:
    one, two = ConsumerMember(broker, "one"), ConsumerMember(broker, "two")
    client = broker.client()

    def listed(**fields: Any) -> list[tuple[str, str, str]]:
        groups = client.call(ListGroupsRequest(**fields), 5).groups
        return [(group.group_type, group.protocol_type, group.group_state) for group in groups]

    one.join()
    assert listed() == [("consumer", "consumer", "Stable")]
    two.join()
    assert listed() == [("consumer", "consumer", "Reconciling")]
    one.leave()
    assert listed(types_filter=["Consumer"]) == [("consumer", "consumer", "Assigning")]
    assert listed(types_filter=["classic"]) == []
    two.leave()
    assert listed(states_filter=["empty"]) == [("consumer", "consumer", "Empty")]


SUBSCRIBERS = {
    "subscribed by name": ({"topics": ["t"]}, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),
    "subscribed by regular expression": ({"regex": "[a-z]"}, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),
    "not subscribed": ({"topics": ["u"]}, 0),
}


@pytest.mark.parametrize(("member", "code"), SUBSCRIBERS.values(), ids=SUBSCRIBERS)
def test_offsets_of_subscribed_topics_are_not_deleted(broker: VirtualBroker, member: dict[str, Any], code: int) -> None:
    ConsumerMember(broker, "m", **member).join()
    response = broker.client().call(delete_offsets_request(), 0)
    assert (response.error_code, response.topics[0].partitions[0].error_code) == (0, code)


def test_group_without_members_and_offsets_is_removed_after_retention(broker: VirtualBroker) -> None:
    member = joined(ConsumerMember(broker, "m"))
    broker.advance(0)
    member.leave()
    assert consumer_group(broker).is_empty
    broker.advance(600_000)
    assert "group" not in broker.broker.groups.groups
