"""Timeouts and expiry of the transaction coordinator, and its records in __transaction_state."""

import pytest
from msgspec.structs import replace

from sluice.broker.coordinator.common.coordinator_log import CoordinatorLog
from sluice.broker.coordinator.transaction.records import TransactionLogKey, TransactionLogValue
from sluice.broker.metadata.topic import TRANSACTION_STATE_TOPIC, Topic
from sluice.protocol.codec.compile import decoder
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import batch_bounds
from sluice.protocol.records.record import iter_records
from tests.support.records import fetch, fetched
from tests.support.transactions import LEGACY, NEW, Producer, begun, init_request, initialized, stored
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker, broker_with_topic

BOTH = pytest.mark.parametrize("versions", [LEGACY, NEW], ids=["legacy client", "transaction version 2"])
CHECK_MS = 10_000  # transaction.abort.timed.out.transaction.cleanup.interval.ms
HOUR_MS = 3_600_000


def state(broker: VirtualBroker, transactional_id: str = "tx") -> str | None:
    metadata = broker.broker.transactions.get(transactional_id)
    return None if metadata is None else metadata.state.label


# -- timeouts ----------------------------------------------------------------------------------------------------------


@BOTH
def test_transaction_is_aborted_at_the_first_check_after_its_timeout(versions: dict[str, int]) -> None:
    broker = broker_with_topic()
    begun(broker, versions, timeout_ms=15_000)
    broker.advance(2 * CHECK_MS - 1)
    assert state(broker) == "Ongoing"
    broker.advance(1)
    assert state(broker) == "CompleteAbort"
    marker, _ = stored(broker)[-1]
    assert (marker.is_control, marker.producer_epoch) == (True, 1), "epoch 0 is fenced"
    assert len(broker.partition().log.aborted_transactions(0, 2)) == 1


def test_transaction_as_old_as_its_timeout_is_not_aborted(topic: Topic, broker: VirtualBroker) -> None:
    begun(broker, timeout_ms=CHECK_MS)
    broker.advance(CHECK_MS)
    assert state(broker) == "Ongoing"
    broker.advance(CHECK_MS)
    assert state(broker) == "CompleteAbort"


def test_transaction_timeout_starts_with_the_first_partition(topic: Topic, broker: VirtualBroker) -> None:
    producer = initialized(broker, timeout_ms=5_000)
    broker.advance(4 * CHECK_MS)
    assert state(broker) == "Empty", "no transaction has started"
    producer.add()
    broker.advance(6_000)
    producer.add()
    broker.advance(4_000)
    assert state(broker) == "CompleteAbort"


def test_timed_out_producer_is_fenced(topic: Topic, broker: VirtualBroker) -> None:
    producer = begun(broker, timeout_ms=1_000)
    broker.advance(CHECK_MS)
    assert producer.send(b"w") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.add() == {ErrorCode.PRODUCER_FENCED}
    assert producer.end() == ErrorCode.PRODUCER_FENCED
    assert producer.init(producer_id=0, producer_epoch=0) == 0, "it had the latest epoch and may continue (KIP-360)"
    producer.commit_values(b"x")
    assert producer.epoch == 1


def test_timed_out_producer_of_transaction_version_2_may_abort_and_continue(broker: VirtualBroker) -> None:
    broker.topic()
    producer = begun(broker, NEW, timeout_ms=1_000)
    broker.advance(CHECK_MS)
    assert producer.send(b"w") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end(committed=True) == ErrorCode.INVALID_TXN_STATE
    assert producer.end(committed=False) == 0
    producer.commit_values(b"x")
    assert (producer.epoch, broker.partition().log.last_stable_offset) == (2, 4)


def test_timeout_completes_a_pending_fetch(topic: Topic, broker: VirtualBroker) -> None:
    begun(broker, timeout_ms=1_000)
    reader = broker.client()
    reader.send(fetch(0, isolation_level=1, max_wait_ms=60_000), 11)
    broker.advance(CHECK_MS)
    response = reader.response()
    assert (response.at_ms, fetched(response.message).last_stable_offset) == (CHECK_MS, 2)


def test_kafka_3_9_increments_the_epoch_on_timeout_and_fences_the_producer() -> None:
    broker = broker_with_topic("sluice.kafka.release=kafka-3.9")
    begun(broker, timeout_ms=1_000)
    broker.advance(CHECK_MS)
    assert stored(broker)[-1][0].producer_epoch == 1
    newer = Producer(broker)
    assert newer.init(producer_id=0, producer_epoch=0) == ErrorCode.PRODUCER_FENCED
    assert (newer.init(), newer.epoch) == (0, 2)
    assert {value.client_transaction_version for _, value in written(broker) if value is not None} == {0}


# -- expiry ------------------------------------------------------------------------------------------------------------


def test_unused_transactional_id_expires_and_gets_a_new_producer_id() -> None:
    broker = broker_with_topic(f"transactional.id.expiration.ms={2 * HOUR_MS}", "connections.max.idle.ms=-1")
    producer = initialized(broker)
    broker.advance(HOUR_MS)
    producer.commit_values(b"v")
    broker.advance(2 * HOUR_MS - 1)
    assert state(broker) == "CompleteCommit"
    broker.advance(1)
    assert state(broker) is None
    assert written(broker)[-1] == ("tx", None), "the id is deleted with a tombstone"
    assert producer.add() == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert (producer.init(), producer.producer_id, producer.epoch) == (0, 1, 0)


def test_open_transaction_does_not_expire() -> None:
    day_ms = 24 * HOUR_MS
    broker = broker_with_topic(f"transactional.id.expiration.ms={HOUR_MS}", f"transaction.max.timeout.ms={day_ms}")
    begun(broker, timeout_ms=day_ms)
    broker.advance(5 * HOUR_MS)
    assert state(broker) == "Ongoing"


def test_expiry_is_tried_again_if_the_tombstone_is_not_replicated_within_the_request_timeout() -> None:
    properties = ("sluice.replication.delay.ms=100", "request.timeout.ms=50")
    broker = VirtualBroker("transactional.id.expiration.ms=1", *properties)
    broker.client().send(init_request(), 5)
    broker.advance(HOUR_MS)
    broker.advance(100)
    assert state(broker) == "Empty"
    client = broker.client()
    client.send(init_request(), 5)
    broker.advance(100)
    assert client.response().message.error_code == ErrorCode.NONE


def test_expiring_transactional_id_returns_concurrent_transactions() -> None:
    broker = VirtualBroker("transactional.id.expiration.ms=1", "sluice.replication.delay.ms=100")
    broker.client().send(init_request(), 5)
    broker.advance(HOUR_MS)
    assert state(broker) == "Empty"
    assert Producer(broker).init() == ErrorCode.CONCURRENT_TRANSACTIONS
    broker.advance(100)
    assert state(broker) is None


# -- records -----------------------------------------------------------------------------------------------------------


def written(broker: VirtualBroker) -> list[tuple[str, TransactionLogValue | None]]:
    """Return the transactional id and value of all records of "tx"."""
    log = CoordinatorLog(broker.broker, TRANSACTION_STATE_TOPIC).partition_of("tx").log
    data = memoryview(b"".join(log.read(0, 2**31 - 1, log.log_end_offset, True).parts))
    batches = [data[position : position + size] for position, size, _ in batch_bounds(data)]
    decoded = []
    for record in (record for batch in batches for record in iter_records(batch)):
        assert record.key is not None
        assert record.key[:2] == b"\0\0"
        key = decoder(TransactionLogKey, 0)(memoryview(record.key), 2, len(record.key))
        value = None
        if record.value is not None:
            version = int.from_bytes(record.value[:2])
            value = decoder(TransactionLogValue, version)(memoryview(record.value), 2, len(record.value))
        decoded.append((key.transactional_id, value))
    return decoded


def test_each_state_change_writes_a_record(broker: VirtualBroker) -> None:
    broker.topic(partitions=2)
    producer = initialized(broker, timeout_ms=30_000)
    broker.advance(5)
    producer.add(("t", 1), ("t", 0))
    broker.advance(5)
    producer.versions = NEW
    producer.end()
    written_records = written(broker)
    assert {transactional_id for transactional_id, _ in written_records} == {"tx"}
    values = [value for _, value in written_records if value is not None]
    assert [value.transaction_status for value in values] == [0, 1, 2, 4]
    assert [value.producer_epoch for value in values] == [0, 0, 1, 1]
    assert [value.client_transaction_version for value in values] == [0, 0, 2, 2]
    partitions = [
        None
        if value.transaction_partitions is None
        else [(topic.topic, topic.partition_ids) for topic in value.transaction_partitions]
        for value in values
    ]
    assert partitions == [None, [("t", [0, 1])], [("t", [0, 1])], []]
    started_ms, ended_ms = WALL_START_MS + 5, WALL_START_MS + 10
    assert [value.transaction_start_timestamp_ms for value in values] == [-1, started_ms, started_ms, started_ms]
    updated_ms = [value.transaction_last_update_timestamp_ms for value in values]
    assert updated_ms == [WALL_START_MS, started_ms, ended_ms, ended_ms]
    assert {(v.producer_id, v.previous_producer_id, v.next_producer_id) for v in values} == {(0, 0, -1)}
    assert {value.transaction_timeout_ms for value in values} == {30_000}


def test_transaction_record_above_the_message_size_limit_is_rejected(broker: VirtualBroker) -> None:
    broker.topic(partitions=200)
    producer = initialized(broker)
    topic = broker.broker.cluster.topics["__transaction_state"]
    for partition in topic.partitions:
        config = partition.log.config
        small = replace(config.append, max_message_bytes=500)
        partition.log.update_config(replace(config, append=small))
    assert producer.add(*[("t", index) for index in range(200)]) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert state(broker) == "Empty"
    assert producer.add() == {0}, "no change is pending"
