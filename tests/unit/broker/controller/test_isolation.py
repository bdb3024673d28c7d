"""Isolated brokers: a log that diverges and a frozen view of the cluster."""

import pytest

from sluice.broker.controller.isolation import IsolatedLog, IsolatedMetadata
from sluice.broker.log.log_results import TimestampOffset
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.server.cluster_server import ClusterServer
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.errors import ErrorCode
from tests.support.records import batch, produce
from tests.support.transactions import NEW, Producer
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker
from tests.support.wire import error_codes


def diverging_log(committed: int) -> IsolatedLog:
    """Return a log that diverges after `committed` records, each a batch and one second apart."""
    broker = VirtualBroker()
    log = broker.topic().partitions[0].log
    for number in range(committed):
        data = batch(b"%d" % number, timestamp=WALL_START_MS + 1000 * number)
        log.append(memoryview(bytearray(data)), WALL_START_MS, 0)
    return IsolatedLog(log)


def test_appends_after_the_divergence_are_not_readable() -> None:
    log = diverging_log(3)
    result = log.append(memoryview(bytearray(batch(b"mine"))), WALL_START_MS, 0)
    assert (result.error_code, result.base_offset) == (ErrorCode.NONE, 3)
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (4, 3, 3)
    assert log.read(3, 1 << 20, log.high_watermark, min_one_batch=True).size == 0


def test_batch_of_a_producer_from_before_the_divergence_is_a_duplicate() -> None:
    def append(log: PartitionLog, sequence: int) -> tuple[int, int]:
        data = batch(b"%d" % sequence, producer_id=7, producer_epoch=0, base_sequence=sequence)
        result = log.append(memoryview(bytearray(data)), WALL_START_MS, 0)
        return result.error_code, result.base_offset

    committed = VirtualBroker().topic().partitions[0].log
    before = [append(committed, sequence) for sequence in range(2)]
    log = IsolatedLog(committed)
    assert append(log, 2) == append(committed, 2) == (ErrorCode.NONE, 2)
    assert [append(log, sequence) for sequence in range(2)] == before == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 1)]
    assert append(log, 5)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(committed, 3) == (ErrorCode.NONE, 3)  # has a state of its own


def test_committed_records_are_readable() -> None:
    log = diverging_log(3)
    one = len(batch(b"0"))
    found = log.read(1, 1 << 20, log.high_watermark, min_one_batch=True)
    assert (found.size, found.next_offset) == (2 * one, 3)
    assert log.size_available(1, 1 << 20, log.high_watermark, min_one_batch=True) == 2 * one
    assert log.bytes_between(0, log.high_watermark, 1 << 20) == 3 * one
    assert log.bytes_between(3, 4, 1 << 20) == 0


def test_aborted_transactions_are_reported_to_read_committed_consumers() -> None:
    broker = VirtualBroker()
    committed = broker.topic("t").partitions[0].log
    producer = Producer(broker, NEW)
    assert producer.init() == 0
    producer.commit_values(b"a", b"b", committed=False)
    log = IsolatedLog(committed)
    (aborted,) = log.aborted_transactions(0, log.last_stable_offset)
    assert (aborted.first_offset, aborted.last_offset) == (0, 2)


@pytest.mark.parametrize("offset", [-1, 5])
def test_out_of_range_offset_is_rejected(offset: int) -> None:
    found = diverging_log(3).read(offset, 1 << 20, 3, min_one_batch=True)
    assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_offsets_are_found_by_timestamp_and_leader_epoch() -> None:
    log = diverging_log(3)
    assert log.offset_for_timestamp(WALL_START_MS + 1000) == TimestampOffset(WALL_START_MS + 1000, 1, 0)
    assert log.max_timestamp_offset() == TimestampOffset(WALL_START_MS + 2000, 2, 0)
    assert log.leader_epoch_at(1) == 0


def test_log_has_earlier_epochs_and_no_later_ones_of_the_cluster() -> None:
    committed = diverging_log(3)._committed
    log = IsolatedLog(committed)
    committed.begin_epoch(1)
    committed.append(memoryview(bytearray(batch(b"theirs"))), WALL_START_MS, 1)
    log.append(memoryview(bytearray(batch(b"mine"))), WALL_START_MS, 0)
    assert (log.end_offset_for_epoch(0), log.leader_epoch_at(3)) == ((0, 4), 0)
    assert committed.end_offset_for_epoch(0) == (0, 3)


def isolated() -> tuple[VirtualBroker, ClusterServer]:
    """Return three brokers; broker 1 is isolated, leads t-0 and follows u-0."""
    cluster = VirtualBroker("sluice.brokers=3")
    for name, replicas in (("t", (1, 2)), ("u", (2, 1))):
        cluster.topic(name, assignments={0: replicas})
    cluster.cluster_server.isolate_broker(1)
    return cluster, cluster.cluster_server


def test_isolated_leader_shares_the_cluster_log_until_another_leads() -> None:
    cluster, server = isolated()
    metadata = cluster.broker.metadata
    assert isinstance(metadata, IsolatedMetadata)
    assert metadata.partition("t", 0) is cluster.partition("t")
    assert metadata.partition("u", 0) is not cluster.partition("u")
    server.move_leader("t", 0, 2)
    kept = metadata.partition("t", 0)
    assert kept is not None
    assert kept is not cluster.partition("t")
    assert (kept.leader, kept.leader_epoch, type(kept.log)) == (1, 0, IsolatedLog)
    server.rejoin_broker(1)
    assert not isinstance(cluster.broker.metadata, IsolatedMetadata)
    assert kept.leader == -1, "waiting requests must fail"


def test_isolated_broker_does_not_auto_create_topics() -> None:
    cluster, _ = isolated()
    request = MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True)
    assert error_codes(cluster.client(node_id=1).call(request, 9)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert "new" not in cluster.cluster.topics


def test_isolated_follower_returns_the_former_leader() -> None:
    cluster, _ = isolated()
    response = cluster.client(node_id=1).call(produce(10, topic="u"), 10)
    (partition_response,) = response.responses[0].partition_responses
    assert partition_response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition_response.current_leader.leader_id == 2
