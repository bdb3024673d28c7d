"""Subscriptions that the coordinator reads from the embedded consumer protocol."""

import pytest

from sluice.broker.coordinator.group.consumer_protocol import subscribed_topics
from sluice.protocol.errors import ErrorCode
from tests.support.groups import Member, classic_group, delete_offsets_request, protocol, settle_round, subscription
from tests.support.virtual_broker import VirtualBroker

# Version 3: topics, no user data, one owned partition, generation 1, rack "r".
NEWEST = b"\0\3" + subscription("t", "u")[2:] + bytes.fromhex("00000001 0001 74 00000001 00000000 00000001 0001 72")


SUBSCRIPTIONS = {
    "no topics": (subscription(), []),
    "version 0": (subscription("t", "u"), ["t", "u"]),
    "newer version with the same first fields": (NEWEST, ["t", "u"]),
    "empty": (b"", None),
    "truncated version": (b"\0", None),
    "truncated topic": (subscription("t")[:-1], None),
    "topic count above the size": (b"\0\0" + b"\x7f\xff\xff\xff", None),
    "other protocol": (b"metadata of some other kind", None),
}


@pytest.mark.parametrize(("metadata", "topics"), SUBSCRIPTIONS.values(), ids=SUBSCRIPTIONS)
def test_subscribed_topics_are_read_from_well_formed_metadata(metadata: bytes, topics: list[str] | None) -> None:
    assert subscribed_topics(metadata) == topics


def test_group_is_subscribed_to_the_topics_of_all_members(broker: VirtualBroker) -> None:
    members = [Member(broker) for _ in range(2)]
    for member, topic in zip(members, "tu", strict=True):
        member.send_join(protocol("range", subscription(topic)))
    broker.advance(10_000)
    settle_round(members)
    assert classic_group(broker).subscribed_topics == frozenset({"t", "u"})


def test_unreadable_subscription_counts_as_subscribed_to_every_topic(broker: VirtualBroker) -> None:
    broker.topic()
    member = Member(broker)
    member.send_join(protocol("range", b"?"))
    broker.advance(3_000)
    settle_round([member])
    assert classic_group(broker).subscribed_topics is None
    [topic] = broker.client().call(delete_offsets_request(), 0).topics
    assert topic.partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
