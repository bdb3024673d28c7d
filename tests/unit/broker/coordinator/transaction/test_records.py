"""The bytes of the records in `__transaction_state`, as TransactionLogKey and TransactionLogValue define them."""

import pytest
from msgspec.structs import replace

from sluice.broker.coordinator.transaction.metadata import TransactionMetadata, TransactionState
from sluice.broker.coordinator.transaction.records import key_bytes, value_bytes
from sluice.broker.metadata.topic import TopicPartition

EMPTY = TransactionMetadata("tx", 7, 60_000, 0x0102, producer_epoch=3, previous_producer_id=7)
ONGOING = replace(
    EMPTY,
    state=TransactionState.ONGOING,
    partitions=frozenset({TopicPartition("t", 1), TopicPartition("t", 0)}),
    start_ms=0x0100,
    client_version=2,
)
NEXT_PRODUCER_ID = replace(ONGOING, state=TransactionState.PREPARE_COMMIT, next_producer_id=9, partitions=frozenset())

_PRODUCER = "0000000000000007 0003 0000ea60 "  # id, epoch, timeout
_NO_START = "ffffffffffffffff "


def test_key_contains_version_and_transactional_id() -> None:
    assert key_bytes("tx") == bytes.fromhex("0000 0002 7478")


VALUES = {
    "version 0, no partitions": (EMPTY, 0, "0000 " + _PRODUCER + "00 ffffffff 0000000000000102 " + _NO_START),
    "version 0, two partitions": (
        ONGOING,
        0,
        "0000 " + _PRODUCER + "01 00000001 0001 74 00000002 00000000 00000001 0000000000000102 0000000000000100",
    ),
    "version 1, tagged previous producer id": (
        EMPTY,
        1,
        "0001 " + _PRODUCER + "00 00 0000000000000102 " + _NO_START + "01 00 08 0000000000000007",
    ),
    "version 1, two partitions, transaction version 2": (
        ONGOING,
        2,
        "0001 " + _PRODUCER + "01 02 02 74 03 00000000 00000001 00 0000000000000102 0000000000000100"
        "02 00 08 0000000000000007 02 02 0002",
    ),
    "version 1, next producer id": (
        NEXT_PRODUCER_ID,
        2,
        "0001 " + _PRODUCER + "02 01 0000000000000102 0000000000000100"
        "03 00 08 0000000000000007 01 08 0000000000000009 02 02 0002",
    ),
}


@pytest.mark.parametrize(("metadata", "transaction_version", "expected"), VALUES.values(), ids=VALUES)
def test_value_bytes_equal_kafkas(metadata: TransactionMetadata, transaction_version: int, expected: str) -> None:
    assert value_bytes(metadata, transaction_version).hex() == bytes.fromhex(expected).hex()
