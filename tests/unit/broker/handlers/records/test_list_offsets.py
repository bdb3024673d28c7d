"""ListOffsets: lookup by time and by special timestamps, visibility, version 0 and errors."""

from typing import Any

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis import list_offsets as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records import crc
from sluice.protocol.records.batch import ATTRIBUTES_AT, CRC_AT, HEADER_BYTES
from tests.support.records import batch, batch_of, produce
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker, broker_with_topic

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
NOW = WALL_START_MS


def look_up(
    broker: VirtualBroker,
    version: int,
    timestamp: int,
    *,
    topic: str = "t",
    committed: bool = False,
    replica_id: int = -1,
    **more: Any,
) -> api.ListOffsetsPartitionResponse:
    partition = api.ListOffsetsPartition(**({"partition_index": 0, "timestamp": timestamp} | more))
    topics = [api.ListOffsetsTopic(name=topic, partitions=[partition])]
    request = api.ListOffsetsRequest(replica_id=replica_id, isolation_level=int(committed), topics=topics)
    (result,) = broker.client().call(request, version).topics[0].partitions
    assert isinstance(result, api.ListOffsetsPartitionResponse)
    return result


def filled(*overrides: str) -> VirtualBroker:
    """Return a broker with five records, timestamped 100, 300, 200, 50 and 50 ms before now."""
    broker = broker_with_topic(*overrides)
    client = broker.client()
    for age_ms in (100, 300, 200, 50, 50):
        client.call(produce(9, batch(b"v", timestamp=NOW - age_ms)), 9)
    broker.advance(0)
    return broker


TIMESTAMPS = {
    "latest is the log end": (LATEST, 1, (-1, 5)),
    "earliest is the log start": (EARLIEST, 1, (-1, 0)),
    "maximum timestamp, first of several": (MAX_TIMESTAMP, 7, (NOW - 50, 3)),
    "earliest local is the log start, as nothing is tiered": (EARLIEST_LOCAL, 8, (-1, 0)),
    "latest tiered is undefined": (LATEST_TIERED, 9, (-1, -1)),
    "earliest pending upload is undefined": (EARLIEST_PENDING_UPLOAD, 11, (-1, -1)),
    "unknown special timestamp": (-7, 99, (-1, -1)),
    "time before all records": (0, 1, (NOW - 100, 0)),
    "first record by offset with a timestamp at or after the time": (NOW - 250, 1, (NOW - 100, 0)),
    "time between two records": (NOW - 99, 1, (NOW - 50, 3)),
    "time equal to a timestamp": (NOW - 50, 1, (NOW - 50, 3)),
    "time after all records is undefined": (NOW - 49, 1, (-1, -1)),
}


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize(("timestamp", "since", "expected"), TIMESTAMPS.values(), ids=TIMESTAMPS)
def test_timestamp_is_looked_up_in_the_versions_that_support_it(
    version: int, timestamp: int, since: int, expected: tuple[int, int]
) -> None:
    result = look_up(filled(), version, timestamp)
    if version < since:
        assert result.error_code == ErrorCode.UNSUPPORTED_VERSION
    else:
        assert (result.error_code, result.timestamp, result.offset) == (0, *expected)


def test_leader_epoch_is_returned_from_version_4() -> None:
    broker = filled()
    assert look_up(broker, 4, LATEST).leader_epoch == 0
    assert look_up(broker, 4, NOW - 50).leader_epoch == 0
    assert look_up(broker, 3, LATEST).leader_epoch == -1


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST])
def test_empty_log_starts_and_ends_at_offset_0(topic: Topic, broker: VirtualBroker, timestamp: int) -> None:
    assert look_up(broker, 7, timestamp).offset == 0


def test_empty_log_has_no_offset_by_time(topic: Topic, broker: VirtualBroker) -> None:
    for timestamp in (MAX_TIMESTAMP, 0):
        result = look_up(broker, 7, timestamp)
        assert (result.error_code, result.timestamp, result.offset) == (0, -1, -1)


def test_deleted_records_move_the_earliest_offset() -> None:
    broker = filled()
    broker.partition().log.delete_records_before(2)
    assert look_up(broker, 7, EARLIEST).offset == 2
    assert look_up(broker, 7, 0).offset == 2


def test_unreplicated_records_are_not_found() -> None:
    broker = filled("sluice.replication.delay.ms=1000")
    assert look_up(broker, 7, LATEST).offset == 0
    assert look_up(broker, 7, 0).offset == -1
    assert look_up(broker, 7, MAX_TIMESTAMP).offset == -1
    broker.advance(1000)
    assert look_up(broker, 7, LATEST).offset == 5


def test_read_committed_ends_at_the_last_stable_offset() -> None:
    broker = filled()
    log = broker.partition().log
    data = batch(b"open", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True, timestamp=NOW)
    assert log.append(memoryview(bytearray(data)), NOW, 0).error_code == 0
    log.advance_high_watermark(6)
    assert look_up(broker, 7, LATEST).offset == 6
    assert look_up(broker, 7, LATEST, committed=True).offset == 5
    assert look_up(broker, 7, NOW - 1).offset == 5
    assert look_up(broker, 7, NOW - 1, committed=True).offset == -1


# -- version 0 ---------------------------------------------------------------------------------------------------------


def segmented(every_ms: int = 1_000, *overrides: str) -> VirtualBroker:
    """Return a broker with segments at offsets 0, 1 and 2, appended one second apart by default."""
    broker = broker_with_topic("log.segment.bytes=4096", *overrides)
    for _ in range(3):
        broker.client().call(produce(9, batch_of(3_000)), 9)
        broker.advance(every_ms)
    return broker


SEGMENT_OFFSETS = {
    "all offsets, log end first": (LATEST, 10, [3, 2, 1, 0]),
    "one offset, the log end": (LATEST, 1, [3]),
    "two offsets": (LATEST, 2, [3, 2]),
    "zero offsets": (LATEST, 0, []),
    "negative number of offsets": (LATEST, -1, []),
    "earliest is the log start": (EARLIEST, 10, [0]),
    "segments modified up to the time": (NOW + 1_000, 10, [1, 0]),
    "log end counts as modified at the time of the request": (NOW + 2_999, 10, [2, 1, 0]),
    "current time": (NOW + 3_000, 10, [3, 2, 1, 0]),
    "time before all segments": (NOW - 1, 10, []),
    "earliest local is the log start": (EARLIEST_LOCAL, 10, [0]),
    "unknown special timestamp is a time before all segments": (MAX_TIMESTAMP, 10, []),
}


@pytest.mark.parametrize(("timestamp", "max_offsets", "expected"), SEGMENT_OFFSETS.values(), ids=SEGMENT_OFFSETS)
def test_version_0_returns_segment_base_offsets_in_descending_order(
    timestamp: int, max_offsets: int, expected: list[int]
) -> None:
    result = look_up(segmented(), 0, timestamp, max_num_offsets=max_offsets)
    assert (result.error_code, result.old_style_offsets) == (0, expected)


def test_version_0_returns_0_for_an_empty_log(topic: Topic, broker: VirtualBroker) -> None:
    assert look_up(broker, 0, LATEST).old_style_offsets == [0]


@pytest.mark.parametrize(("replica_id", "expected"), [(-1, [2, 2, 1, 0]), (-2, [3, 2, 1, 0]), (7, [3, 2, 1, 0])])
def test_version_0_hides_unreplicated_records_from_consumers(replica_id: int, expected: list[int]) -> None:
    broker = segmented(800, "sluice.replication.delay.ms=1000")
    assert look_up(broker, 0, LATEST, max_num_offsets=10, replica_id=replica_id).old_style_offsets == expected


# -- replicas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize(
    ("replica_id", "latest"), [pytest.param(-1, 0, id="consumer"), (-2, 5), pytest.param(7, 5, id="replica")]
)
@pytest.mark.parametrize("committed", [False, True])
def test_followers_and_debugging_consumers_see_the_log_end(
    version: int, replica_id: int, latest: int, committed: bool
) -> None:
    broker = filled("sluice.replication.delay.ms=1000")
    assert look_up(broker, version, LATEST, replica_id=replica_id, committed=committed).offset == latest
    assert look_up(broker, version, 0, replica_id=replica_id).offset == (0 if latest else -1)


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(12))
def test_unknown_partition_is_rejected(version: int) -> None:
    broker = filled()
    assert look_up(broker, version, LATEST, topic="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert look_up(broker, version, LATEST, partition_index=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("epoch", "code"), [(4, ErrorCode.FENCED_LEADER_EPOCH), (5, 0), (-1, 0), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_other_leader_epoch_is_rejected(epoch: int, code: int) -> None:
    broker = filled()
    broker.partition().leader_epoch = 5
    assert look_up(broker, 4, LATEST, current_leader_epoch=epoch).error_code == code


@pytest.mark.parametrize("version", range(1, 12))
def test_duplicate_partition_is_an_invalid_request(version: int) -> None:
    broker = filled()
    partitions = [api.ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in (0, 1, 0)]
    topics = [api.ListOffsetsTopic(name="t", partitions=those) for those in (partitions[:2], partitions[2:])]
    (response,) = broker.client().call(api.ListOffsetsRequest(replica_id=-1, topics=topics), version).topics
    results = [(partition.partition_index, partition.error_code, partition.offset) for partition in response.partitions]
    assert results == [(0, ErrorCode.INVALID_REQUEST, -1), (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]


def test_version_0_lists_duplicate_partitions_separately() -> None:
    broker = filled()
    partitions = [api.ListOffsetsPartition(partition_index=0, timestamp=LATEST)] * 2
    request = api.ListOffsetsRequest(replica_id=-1, topics=[api.ListOffsetsTopic(name="t", partitions=partitions)])
    (topic,) = broker.client().call(request, 0).topics
    assert [partition.old_style_offsets for partition in topic.partitions] == [[5], [5]]


def test_unsupported_timestamp_is_reported_before_an_unknown_partition() -> None:
    assert look_up(filled(), 6, MAX_TIMESTAMP, topic="nowhere").error_code == ErrorCode.UNSUPPORTED_VERSION


def test_unreadable_records_return_unknown_server_error() -> None:
    broker = broker_with_topic("sluice.record.validation.max.bytes=0")
    damaged = bytearray(batch_of(100))
    damaged[HEADER_BYTES : HEADER_BYTES + 8] = b"\xff" * 8
    damaged[CRC_AT:ATTRIBUTES_AT] = crc.crc32c(memoryview(damaged)[ATTRIBUTES_AT:]).to_bytes(4)
    broker.client().call(produce(9, bytes(damaged)), 9)
    assert look_up(broker, 1, 0).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, EARLIEST_LOCAL])
def test_empty_log_returns_the_current_leader_epoch(topic: Topic, broker: VirtualBroker, timestamp: int) -> None:
    assert look_up(broker, 8, timestamp).leader_epoch == 0


@pytest.mark.parametrize("version", range(1, 12))
def test_topics_without_partitions_are_left_out(version: int) -> None:
    named = api.ListOffsetsTopic(name="t", partitions=[api.ListOffsetsPartition(partition_index=0, timestamp=LATEST)])
    topics = [api.ListOffsetsTopic(name="t"), api.ListOffsetsTopic(name="nowhere"), named]
    response = broker_with_topic().client().call(api.ListOffsetsRequest(topics=topics), version)
    assert [(topic.name, len(topic.partitions)) for topic in response.topics] == [("t", 1)]
