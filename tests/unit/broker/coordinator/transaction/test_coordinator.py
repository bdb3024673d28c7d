"""What the coordinator does in time, and what it writes down: timeouts, expiry, `__transaction_state`."""

import pytest
from msgspec.structs import replace

from sluice.broker.coordinator.common.coordinator_log import java_hash
from sluice.broker.coordinator.transaction.records import TransactionLogKey, TransactionLogValue
from sluice.protocol.codec.compile import decoder
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.record import iter_records
from tests.support.records import fetch, fetched
from tests.support.transactions import LEGACY, NEW, Producer, begun, init_request, stored
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker

BOTH = pytest.mark.parametrize("versions", [LEGACY, NEW], ids=["adds its partitions", "of transaction version 2"])
CHECK_MS = 10_000  # transaction.abort.timed.out.transaction.cleanup.interval.ms
HOUR_MS = 3_600_000


def state(broker: VirtualBroker, transactional_id: str = "tx") -> str | None:
    metadata = broker.broker.transactions.get(transactional_id)
    return None if metadata is None else metadata.state.label


# -- timeouts ----------------------------------------------------------------------------------------------------------


@BOTH
def test_a_transaction_is_aborted_at_the_first_check_after_its_timeout(versions: dict[str, int]) -> None:
    broker = VirtualBroker()
    broker.topic()
    begun(broker, versions, timeout_ms=15_000)
    broker.advance(2 * CHECK_MS - 1)
    assert state(broker) == "Ongoing"
    broker.advance(1)
    assert state(broker) == "CompleteAbort"
    marker, _ = stored(broker)[-1]
    assert (marker.is_control, marker.producer_epoch) == (True, 1), "whoever had epoch 0 is fenced"
    assert len(broker.partition().log.aborted_transactions(0, 2)) == 1


def test_a_transaction_that_is_just_as_old_as_it_may_be_goes_on() -> None:
    broker = VirtualBroker()
    broker.topic()
    begun(broker, timeout_ms=CHECK_MS)
    broker.advance(CHECK_MS)
    assert state(broker) == "Ongoing"
    broker.advance(CHECK_MS)
    assert state(broker) == "CompleteAbort"


def test_the_timeout_counts_from_the_first_partition_on() -> None:
    broker = VirtualBroker()
    broker.topic()
    producer = Producer(broker, timeout_ms=5_000)
    producer.init()
    broker.advance(4 * CHECK_MS)
    assert state(broker) == "Empty", "nothing began"
    producer.add()
    broker.advance(6_000)
    producer.add()
    broker.advance(4_000)
    assert state(broker) == "CompleteAbort"


def test_a_producer_that_was_too_slow_is_fenced() -> None:
    broker = VirtualBroker()
    broker.topic()
    producer = begun(broker, timeout_ms=1_000)
    broker.advance(CHECK_MS)
    assert producer.send(b"w") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.add() == {ErrorCode.PRODUCER_FENCED}
    assert producer.end() == ErrorCode.PRODUCER_FENCED
    assert producer.init(producer_id=0, producer_epoch=0) == 0, "its epoch was the last one: it may go on (KIP-360)"
    producer.commit_values(b"x")
    assert producer.epoch == 1


def test_a_producer_of_version_2_that_was_too_slow_may_abort_and_go_on() -> None:
    broker = VirtualBroker()
    broker.topic()
    producer = begun(broker, NEW, timeout_ms=1_000)
    broker.advance(CHECK_MS)
    assert producer.send(b"w") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end(committed=True) == ErrorCode.INVALID_TXN_STATE
    assert producer.end(committed=False) == 0
    producer.commit_values(b"x")
    assert (producer.epoch, broker.partition().log.last_stable_offset) == (2, 4)


def test_a_reader_that_waits_is_woken_by_the_timeout() -> None:
    broker = VirtualBroker()
    broker.topic()
    begun(broker, timeout_ms=1_000)
    reader = broker.client()
    reader.send(fetch(0, isolation_level=1, max_wait_ms=60_000), 11)
    broker.advance(CHECK_MS)
    answer = reader.answer()
    assert (answer.at_ms, fetched(answer.message).last_stable_offset) == (CHECK_MS, 2)


def test_a_broker_like_kafka_3_9_fences_with_the_epochs_of_its_time() -> None:
    broker = VirtualBroker("sluice.kafka.release=kafka-3.9")
    broker.topic()
    begun(broker, timeout_ms=1_000)
    broker.advance(CHECK_MS)
    assert stored(broker)[-1][0].producer_epoch == 1
    newer = Producer(broker)
    assert newer.init(producer_id=0, producer_epoch=0) == ErrorCode.PRODUCER_FENCED
    assert (newer.init(), newer.epoch) == (0, 2)
    assert {value.client_transaction_version for _, value in written(broker) if value is not None} == {0}


# -- expiry ------------------------------------------------------------------------------------------------------------


def test_an_id_that_nobody_uses_is_forgotten_and_begins_anew() -> None:
    broker = VirtualBroker(f"transactional.id.expiration.ms={2 * HOUR_MS}", "connections.max.idle.ms=-1")
    broker.topic()
    producer = Producer(broker)
    producer.init()
    broker.advance(HOUR_MS)
    producer.commit_values(b"v")
    broker.advance(2 * HOUR_MS - 1)
    assert state(broker) == "CompleteCommit"
    broker.advance(1)
    assert state(broker) is None
    assert written(broker)[-1] == ("tx", None), "a tombstone"
    assert producer.add() == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert (producer.init(), producer.producer_id, producer.epoch) == (0, 1, 0)


def test_an_open_transaction_does_not_expire() -> None:
    day_ms = 24 * HOUR_MS
    broker = VirtualBroker(f"transactional.id.expiration.ms={HOUR_MS}", f"transaction.max.timeout.ms={day_ms}")
    broker.topic()
    begun(broker, timeout_ms=day_ms)
    broker.advance(5 * HOUR_MS)
    assert state(broker) == "Ongoing"


def test_an_id_whose_tombstone_waits_for_replicas_cannot_be_used() -> None:
    broker = VirtualBroker("transactional.id.expiration.ms=1", "sluice.replication.delay.ms=100")
    broker.client().send(init_request(), 5)
    broker.advance(HOUR_MS)
    assert state(broker) == "Empty"
    assert Producer(broker).init() == ErrorCode.CONCURRENT_TRANSACTIONS
    broker.advance(100)
    assert state(broker) is None


# -- what is written down ----------------------------------------------------------------------------------------------


def written(broker: VirtualBroker) -> list[tuple[str, TransactionLogValue | None]]:
    """All records about "tx": the id, and what is known of it."""
    partitions = broker.broker.cluster.topics["__transaction_state"].partitions
    log = partitions[java_hash("tx") % len(partitions)].log
    found = log.read(0, 2**31 - 1, log.log_end_offset, True)
    records = []
    data = memoryview(b"".join(found.parts))
    place = 0
    while place < len(data):
        size = int.from_bytes(data[place + 8 : place + 12]) + 12
        records += list(iter_records(data[place : place + size]))
        place += size
    decoded = []
    for record in records:
        assert record.key is not None
        assert record.key[:2] == b"\0\0"
        key = decoder(TransactionLogKey, 0)(memoryview(record.key), 2, len(record.key))
        value = None
        if record.value is not None:
            version = int.from_bytes(record.value[:2])
            value = decoder(TransactionLogValue, version)(memoryview(record.value), 2, len(record.value))
        decoded.append((key.transactional_id, value))
    return decoded


def test_each_step_is_a_record_in_the_ids_partition() -> None:
    broker = VirtualBroker()
    broker.topic(partitions=2)
    producer = Producer(broker, timeout_ms=30_000)
    producer.init()
    broker.advance(5)
    producer.add(("t", 1), ("t", 0))
    broker.advance(5)
    producer.versions = NEW
    producer.end()
    steps = written(broker)
    assert {transactional_id for transactional_id, _ in steps} == {"tx"}
    values = [value for _, value in steps if value is not None]
    assert [value.transaction_status for value in values] == [0, 1, 2, 4]
    assert [value.producer_epoch for value in values] == [0, 0, 1, 1]
    assert [value.client_transaction_version for value in values] == [0, 0, 2, 2]
    partitions = [
        None
        if value.transaction_partitions is None
        else [(one.topic, one.partition_ids) for one in value.transaction_partitions]
        for value in values
    ]
    assert partitions == [None, [("t", [0, 1])], [("t", [0, 1])], []]
    began, ended = WALL_START_MS + 5, WALL_START_MS + 10
    assert [value.transaction_start_timestamp_ms for value in values] == [-1, began, began, began]
    assert [value.transaction_last_update_timestamp_ms for value in values] == [WALL_START_MS, began, ended, ended]
    assert {(v.producer_id, v.previous_producer_id, v.next_producer_id) for v in values} == {(0, 0, -1)}
    assert {value.transaction_timeout_ms for value in values} == {30_000}


def test_a_transaction_that_is_too_large_to_be_written_down_is_refused() -> None:
    broker = VirtualBroker()
    broker.topic(partitions=200)
    producer = Producer(broker)
    producer.init()
    topic = broker.broker.cluster.topics["__transaction_state"]
    for partition in topic.partitions:
        config = partition.log.config
        small = replace(config.append, max_message_bytes=500)
        partition.log.update_config(replace(config, append=small))
    assert producer.add(*[("t", index) for index in range(200)]) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert state(broker) == "Empty"
    assert producer.add() == {0}, "nothing is pending"
