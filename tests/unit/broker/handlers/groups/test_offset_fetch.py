"""OffsetFetch: committed offsets of one or several groups, of some or all partitions."""

from typing import Any

import pytest

from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic
from sluice.protocol.errors import ErrorCode
from tests.support.groups import commit_request, fetch_request, fetched
from tests.support.share_groups import ShareMember
from tests.support.virtual_broker import Client, VirtualBroker
from tests.support.wire import error_codes

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def committed() -> tuple[VirtualBroker, Client, bytes]:
    """Return a broker on which "group" committed 5 for t-0, its client, and the topic id."""
    broker = VirtualBroker()
    topic_id = broker.topic(partitions=2).topic_id
    client = broker.client()
    client.call(commit_request(5, committed_metadata="m", committed_leader_epoch=2), 9)
    return broker, client, topic_id


COMMITTED = {
    "committed offset": ("group", 0, 5),
    "partition without offset": ("group", 1, -1),
    "unknown partition": ("group", 7, -1),
    "unknown group": ("other", 0, -1),
}


@pytest.mark.parametrize("version", range(11))
@pytest.mark.parametrize(("group_id", "partition", "offset"), COMMITTED.values(), ids=COMMITTED)
def test_committed_offset_or_minus_one_is_returned(version: int, group_id: str, partition: int, offset: int) -> None:
    _, client, topic_id = committed()
    response = client.call(fetch_request(partition, version=version, topic_id=topic_id, group_id=group_id), version)
    code = UNKNOWN if version == 0 and offset == -1 else ErrorCode.NONE
    assert list(fetched(response).values()) == [(offset, code)]
    topics = response.topics or response.groups[0].topics
    [found] = topics[0].partitions
    assert found.metadata == ("m" if offset == 5 else "")
    assert found.committed_leader_epoch == (2 if offset == 5 and version >= 5 else -1)


@pytest.mark.parametrize("version", range(2, 11))
def test_null_topics_returns_all_offsets_of_the_group(version: int) -> None:
    broker, client, _ = committed()
    broker.topic("a")
    client.call(commit_request(8, topic="a"), 9)
    client.call(commit_request(6, partition=1), 9)
    if version < 8:
        request = OffsetFetchRequest(group_id="group", topics=None)
    else:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="group", topics=None)])
    response = client.call(request, version)
    topics = response.topics or response.groups[0].topics
    names = {topic.topic_id: topic.name for topic in broker.broker.cluster.topics.values()}
    offsets = [
        (names[topic.topic_id] if version >= 10 else topic.name, item.partition_index, item.committed_offset)
        for topic in topics
        for item in topic.partitions
    ]
    assert offsets == [("a", 0, 8), ("t", 0, 5), ("t", 1, 6)]


@pytest.mark.parametrize("version", range(8, 11))
def test_several_groups_are_fetched_in_one_request(version: int) -> None:
    _, client, topic_id = committed()
    topics = [OffsetFetchRequestTopic(name="t", topic_id=topic_id, partition_indexes=[0])]
    groups = [OffsetFetchRequestGroup(group_id=group_id, topics=topics) for group_id in ("other", "group")]
    response = client.call(OffsetFetchRequest(groups=groups), version)
    assert [
        (group.group_id, group.error_code, group.topics[0].partitions[0].committed_offset) for group in response.groups
    ] == [("other", 0, -1), ("group", 0, 5)]


@pytest.mark.parametrize("topic_id", [bytes(range(16)), bytes(16)], ids=["unknown topic id", "zero topic id"])
def test_unknown_topic_id_is_rejected_from_version_10(topic_id: bytes) -> None:
    _, client, _ = committed()
    response = client.call(fetch_request(version=10, topic_id=topic_id), 10)
    assert list(fetched(response).values()) == [(-1, ErrorCode.UNKNOWN_TOPIC_ID)]


def test_failed_topics_follow_the_others() -> None:
    _, client, topic_id = committed()
    ids = [bytes(15) + b"\1", topic_id, bytes(15) + b"\2"]
    topics = [OffsetFetchRequestTopic(topic_id=one, partition_indexes=[0]) for one in ids]
    groups = [OffsetFetchRequestGroup(group_id="group", topics=topics)]
    (group,) = client.call(OffsetFetchRequest(groups=groups), 10).groups
    assert [topic.topic_id for topic in group.topics] == [ids[1], ids[0], ids[2]]


@pytest.mark.parametrize("version", range(11))
def test_fetch_before_the_offsets_topic_exists_returns_not_coordinator(broker: VirtualBroker, version: int) -> None:
    found = broker.client().call(fetch_request(version=version, topic_id=bytes(15) + b"\1"), version)
    assert set(error_codes(found)) == {ErrorCode.NOT_COORDINATOR}
    assert broker.broker.cluster.topics == {}


def test_deleting_a_topic_deletes_its_offsets() -> None:
    broker, client, _ = committed()
    client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    broker.topic()  # a new topic with the same name
    assert fetched(client.call(fetch_request(), 9)) == {("t", 0): (-1, 0)}


def test_empty_topic_list_returns_no_offsets() -> None:
    _, client, _ = committed()
    empty: Any = client.call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="group", topics=[])]), 9)
    assert empty.groups[0].topics == []


@pytest.mark.parametrize("version", range(1, 11))
def test_share_group_has_no_offsets(version: int) -> None:
    broker, client, topic_id = committed()
    assert not ShareMember(broker, group_id="shared").join().error_code
    request = fetch_request(0, version=version, group_id="shared", topic_id=topic_id)
    assert list(fetched(client.call(request, version)).values()) == [(-1, 0)]
