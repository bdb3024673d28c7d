"""Transactional ids replayed from __transaction_state, with records of Kafka and of Sluice."""

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from sluice.broker.coordinator.common.coordinator_log import CoordinatorLog, KeyValue
from sluice.broker.coordinator.transaction.metadata import (
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionMetadata,
    TransactionState,
)
from sluice.broker.coordinator.transaction.records import key_bytes, value_bytes
from sluice.broker.metadata.topic import TRANSACTION_STATE_TOPIC, Topic, TopicPartition
from sluice.protocol.errors import ErrorCode
from tests.support.coordinators import broker_with_recorded, reload_transactions
from tests.support.transactions import LEGACY, NEW, Producer, begun, init_request, stored
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker, broker_with_topic

T_0 = TopicPartition("t", 0)


def write(broker: VirtualBroker, records: Sequence[KeyValue]) -> None:
    log = CoordinatorLog(broker.broker, TRANSACTION_STATE_TOPIC)
    assert log.append("tx", records, WALL_START_MS) == ErrorCode.NONE


def known(broker: VirtualBroker) -> TransactionMetadata:
    metadata = broker.broker.transactions.get("tx")
    assert metadata is not None
    return metadata


def tx_with(state: TransactionState, **fields: Any) -> TransactionMetadata:
    return TransactionMetadata("tx", 7, 60_000, 9, state, producer_epoch=3, **fields)


KEY = bytes.fromhex("0000 0002 7478")  # "tx"


VALUES = {
    "version 0, transaction version 0": (
        "0000 0000000000000007 0003 0000ea60 00 ffffffff 0000000000000009 ffffffffffffffff",
        tx_with(EMPTY),
    ),
    "version 0 with partitions": (
        "0000 0000000000000007 0003 0000ea60 01 00000001 0001 74 00000002 00000000 00000001 0000000000000009"
        "0000000000000008",
        tx_with(ONGOING, partitions=frozenset({T_0, TopicPartition("t", 1)}), start_ms=8),
    ),
    "version 1 with tags": (
        "0001 0000000000000007 0003 0000ea60 04 01 0000000000000009 0000000000000008"
        "03 00 08 0000000000000006 01 08 0000000000000005 02 02 0002",
        tx_with(COMPLETE_COMMIT, previous_producer_id=6, next_producer_id=5, start_ms=8, client_version=2),
    ),
}


@pytest.mark.parametrize(("value", "expected"), VALUES.values(), ids=VALUES)
def test_records_of_all_versions_are_read(broker: VirtualBroker, value: str, expected: TransactionMetadata) -> None:
    write(broker, [(KEY, bytes.fromhex(value))])
    assert known(broker) == expected


def test_records_written_by_apache_kafka_are_read() -> None:
    broker = broker_with_recorded()
    assert {tx.transactional_id: (tx.state.label, tx.producer_id) for tx in broker.broker.transactions} == {
        "a": ("CompleteCommit", 0),
        "b": ("CompleteAbort", 1),
        "open": ("Ongoing", 2),
        "plain": ("CompleteCommit", 3),
    }
    still_open = broker.broker.transactions.get("open")
    assert still_open is not None
    assert still_open.partitions == {T_0, TopicPartition("__consumer_offsets", 0)}


def test_tombstone_removes_a_transactional_id(broker: VirtualBroker) -> None:
    write(broker, [(key_bytes("tx"), value_bytes(tx_with(EMPTY), 2)), (key_bytes("tx"), None)])
    assert broker.broker.transactions.get("tx") is None


def test_unknown_states_are_skipped_and_logged(broker: VirtualBroker, caplog: pytest.LogCaptureFixture) -> None:
    value = "0000 0000000000000007 0003 0000ea60 63 ffffffff 0000000000000009 ffffffffffffffff"
    write(broker, [(KEY, bytes.fromhex(value)), (bytes.fromhex("0009 00"), b"\0\0")])
    with caplog.at_level(logging.WARNING, "sluice.broker"):
        assert broker.broker.transactions.get("tx") is None
    assert [line.getMessage() for line in caplog.records] == [
        "skipping a transactional id in an unknown state",
        "skipped coordinator records of an unknown type or version",
    ]


@pytest.mark.parametrize("versions", [LEGACY, NEW], ids=["legacy client", "transaction version 2"])
def test_open_transaction_continues_after_a_load(topic: Topic, broker: VirtualBroker, versions: dict[str, int]) -> None:
    producer = begun(broker, versions)
    before = list(broker.broker.transactions)
    reload_transactions(broker)
    assert list(broker.broker.transactions) == before
    assert producer.send(b"w") == ErrorCode.NONE
    assert producer.end() == ErrorCode.NONE
    assert [values for header, values in stored(broker) if not header.is_control] == [[b"v"], [b"w"]]
    producer.commit_values(b"x")


def test_load_does_not_change_when_a_transaction_times_out(topic: Topic, broker: VirtualBroker) -> None:
    producer = begun(broker, timeout_ms=20_000)
    broker.advance(15_000)
    reload_transactions(broker)
    broker.advance(20_000)
    assert known(broker).state.label == "CompleteAbort"
    assert producer.send(b"w") == ErrorCode.INVALID_PRODUCER_EPOCH


PREPARED = {"commit": (PREPARE_COMMIT, "CompleteCommit"), "abort": (PREPARE_ABORT, "CompleteAbort")}


@pytest.mark.parametrize(("state", "final_state"), PREPARED.values(), ids=PREPARED)
@pytest.mark.parametrize("has_markers", [False, True], ids=["without markers", "with marker"])
def test_load_completes_a_prepared_transaction(state: TransactionState, final_state: str, has_markers: bool) -> None:
    broker = broker_with_topic()
    producer = begun(broker)
    current = known(broker)
    if has_markers:
        assert producer.end(state is PREPARE_COMMIT) == ErrorCode.NONE
    prepared = TransactionMetadata(
        "tx", current.producer_id, 60_000, WALL_START_MS, state, current.producer_epoch, partitions=current.partitions
    )
    write(broker, [(key_bytes("tx"), value_bytes(prepared, 2))])
    assert broker.partition().log.last_stable_offset == (2 if has_markers else 0)
    reload_transactions(broker)
    assert known(broker).state.label == final_state
    log = broker.partition().log
    assert log.last_stable_offset == log.log_end_offset
    reload_transactions(broker)
    assert known(broker).state.label == final_state
    assert producer.init() == ErrorCode.NONE
    producer.commit_values(b"again")


def test_fenced_producer_stays_fenced_after_a_load(topic: Topic, broker: VirtualBroker) -> None:
    old, new = Producer(broker), Producer(broker)
    assert old.init() == new.init() == ErrorCode.NONE
    reload_transactions(broker)
    assert old.add() == {ErrorCode.PRODUCER_FENCED}
    assert new.add() == {ErrorCode.NONE}


def test_load_does_not_change_when_transactional_ids_expire() -> None:
    broker = VirtualBroker(
        "transactional.id.expiration.ms=50000", "transaction.remove.expired.transaction.cleanup.interval.ms=1000"
    )
    assert Producer(broker).init() == ErrorCode.NONE
    broker.advance(49_000)
    reload_transactions(broker)
    assert known(broker).state is EMPTY
    broker.advance(1_000)
    assert broker.broker.transactions.get("tx") is None
    reload_transactions(broker)
    assert broker.broker.transactions.get("tx") is None


def test_unload_fails_a_pending_request_with_not_coordinator() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=1000")
    producer = Producer(broker)
    producer.client.send(init_request(), 5)
    broker.broker.transactions.shards.unload(CoordinatorLog(broker.broker, TRANSACTION_STATE_TOPIC).partition_of("tx"))
    broker.settle()
    assert producer.client.response().message.error_code == ErrorCode.NOT_COORDINATOR
    broker.advance(60_000)
    assert list(broker.broker.transactions) == []
