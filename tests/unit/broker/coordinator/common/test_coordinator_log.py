"""The internal topics that store coordinator state."""

import pytest

from sluice.broker.coordinator.common.coordinator_log import CoordinatorLog, batch_of, java_hash
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import read_header
from sluice.protocol.records.record import iter_records
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker

JAVA_HASHES = {
    "empty string": ("", 0),
    "three letters": ("abc", 96354),
    "exceeds 31 bits": ("hello world", 1794106052),
    "negative hash": ("my-group", 1906497762),
    "most negative hash": ("polygenelubricants", 0),
    "surrogate pair": ("\U0001f600", 1772899),
}


@pytest.mark.parametrize(("text", "expected"), JAVA_HASHES.values(), ids=JAVA_HASHES)
def test_java_hash_matches_javas_string_hash(text: str, expected: int) -> None:
    assert java_hash(text) == expected


@pytest.mark.parametrize("name", [GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC])
def test_internal_topic_is_created_on_first_use_with_kafkas_settings(name: str) -> None:
    broker = VirtualBroker("offsets.topic.num.partitions=7", "transaction.state.log.num.partitions=7")
    log = CoordinatorLog(broker.broker, name)
    assert name not in broker.broker.cluster.topics
    partition = log.partition_of("abc")
    assert (partition.topic.name, partition.index, len(partition.topic.partitions)) == (name, 96354 % 7, 7)
    assert partition.topic.is_internal
    assert partition.topic.config.names("cleanup.policy") == ("compact",)
    assert log.partition_of("abc") is partition


def test_records_are_appended_as_one_batch_and_are_readable_immediately(broker: VirtualBroker) -> None:
    log = CoordinatorLog(broker.broker, GROUP_METADATA_TOPIC)
    assert log.append("group", [(b"k1", b"v1"), (b"k2", None)], WALL_START_MS) == ErrorCode.NONE
    written = log.partition_of("group").log
    assert written.high_watermark == written.log_end_offset == 2
    [part] = written.read(0, 1 << 20, 2, min_one_batch=True).parts
    assert [(record.key, record.value) for record in iter_records(part)] == [(b"k1", b"v1"), (b"k2", None)]


def append_transactional(log: CoordinatorLog, epoch: int) -> ErrorCode:
    return log.append_batch("group", batch_of([(b"k", b"v")], WALL_START_MS, 5, epoch), WALL_START_MS)


def test_open_transaction_limits_the_last_stable_offset(broker: VirtualBroker) -> None:
    log = CoordinatorLog(broker.broker, GROUP_METADATA_TOPIC)
    for _ in range(2):  # coordinators, unlike producers, write no sequence numbers
        assert append_transactional(log, epoch=1) == ErrorCode.NONE
    written = log.partition_of("group").log
    assert (written.high_watermark, written.last_stable_offset) == (2, 0)
    header = read_header(written.read(0, 1 << 20, 2, min_one_batch=True).parts[0], 0)
    assert (header.producer_id, header.producer_epoch, header.is_transactional) == (5, 1, True)


def test_append_to_a_partition_of_another_leader_is_rejected(broker: VirtualBroker) -> None:
    log = CoordinatorLog(broker.broker, GROUP_METADATA_TOPIC)
    partition = log.partition_of("group")
    partition.leader = 2
    assert log.append("group", [(b"k", b"v")], WALL_START_MS) == ErrorCode.NOT_COORDINATOR
    assert partition.log.log_end_offset == 0


def test_append_with_older_producer_epoch_is_rejected() -> None:
    log = CoordinatorLog(VirtualBroker().broker, GROUP_METADATA_TOPIC)
    assert append_transactional(log, epoch=1) == ErrorCode.NONE
    assert append_transactional(log, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.partition_of("group").log.log_end_offset == 1
