"""OffsetDelete: deletion of offsets of topics without subscribers."""

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis import offset_delete as api
from sluice.protocol.errors import ErrorCode
from tests.support import groups
from tests.support.merged_topics import each_request, shown, with_topics
from tests.support.virtual_broker import Client, VirtualBroker


def delete(client: Client, *topics: str, group_id: str = "group") -> dict[str, int] | int:
    """Return the error code of partition 0 of each topic, or the error of the request."""
    response = client.call(groups.delete_offsets_request(*topics, group_id=group_id), 0)
    if response.error_code:
        assert response.topics == []
        return int(response.error_code)
    return {topic.name: topic.partitions[0].error_code for topic in response.topics}


INVALID_GROUPS = {
    "empty group id": ("", ErrorCode.INVALID_GROUP_ID),
    "unknown group": ("other", ErrorCode.GROUP_ID_NOT_FOUND),
    "members with unreadable subscriptions": ("workers", ErrorCode.NON_EMPTY_GROUP),
}


@pytest.mark.parametrize(("group_id", "code"), INVALID_GROUPS.values(), ids=INVALID_GROUPS)
def test_invalid_group_is_rejected(topic: Topic, broker: VirtualBroker, group_id: str, code: ErrorCode) -> None:
    groups.stable_group(broker, "workers").protocol_type = "connect"
    assert delete(broker.client(), "t", group_id=group_id) == code


def test_offsets_of_a_simple_group_are_deleted(topic: Topic, client: Client) -> None:
    client.call(groups.commit_request(), 9)
    assert delete(client, "t", "u") == {"t": 0, "u": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert groups.fetched(client.call(groups.fetch_request(), 9)) == {("t", 0): (-1, 0)}


def test_offsets_of_subscribed_topics_are_not_deleted(broker: VirtualBroker) -> None:
    for name in ("t", "u"):
        broker.topic(name)
    (member,) = groups.settled_group(broker, 1)  # subscribed to t
    for name in ("t", "u"):
        member.client.call(
            groups.commit_request(topic=name, member_id=member.member_id, generation_id_or_member_epoch=1), 9
        )
    assert delete(member.client, "t", "u") == {"t": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "u": 0}
    assert groups.fetched(member.client.call(groups.fetch_request(topic="u"), 9)) == {("u", 0): (-1, 0)}
    assert groups.fetched(member.client.call(groups.fetch_request(), 9)) == {("t", 0): (7, 0)}


def test_deleting_a_missing_offset_writes_no_record(broker: VirtualBroker) -> None:
    topic = broker.topic(partitions=2)
    client = broker.client()
    client.call(groups.commit_request(partition=1, topic_id=topic.topic_id), 9)
    log_end = broker.broker.groups.log.partition_of("group").log.log_end_offset
    assert delete(client, "t") == {"t": 0}
    assert broker.broker.groups.log.partition_of("group").log.log_end_offset == log_end


@each_request
def test_repeated_and_empty_topics(
    broker: VirtualBroker, requested: list[tuple[str, list[int]]], expected: list[tuple[str, list[int]]]
) -> None:
    with_topics(broker)
    client = broker.client()
    client.call(groups.commit_request(), 9)
    request = api.OffsetDeleteRequest(
        group_id="group",
        topics=[
            api.OffsetDeleteRequestTopic(
                name=name, partitions=[api.OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
            )
            for name, indexes in requested
        ],
    )
    assert shown(client.call(request, 0).topics, {}) == expected
