"""Which control batches a cleaning removes; test_cleaner.py compares whole cleanings with Kafka's."""

import pytest

from sluice.broker.log.cleaner.transactions import CleanedTransactions
from sluice.protocol.records.batch import read_header
from sluice.protocol.records.build import ABORT, COMMIT, build_batch, build_transaction_marker
from sluice.protocol.records.record import Record


def marker(control_type: int) -> bytes:
    return build_transaction_marker(
        control_type, offset=1, timestamp=0, producer_id=1, producer_epoch=0, coordinator_epoch=0
    )


CONTROL_BATCHES = {
    "commit of a transaction without records": (marker(COMMIT), True),
    "abort of a transaction without records": (marker(ABORT), True),
    "batch of a removed marker": (build_batch((), base_offset=1, control=True), True),
    "control record of another type": (
        build_batch((Record(1, 0, b"\0\0\0\2", b"", ()),), base_offset=1, control=True),
        False,
    ),
    "records": (build_batch((Record(1, 0, None, b"", ()),), base_offset=1), False),
}


@pytest.mark.parametrize(("batch", "is_removed"), CONTROL_BATCHES.values(), ids=CONTROL_BATCHES)
def test_control_batches_without_use_are_removed(batch: bytes, is_removed: bool) -> None:
    assert CleanedTransactions([]).is_useless(read_header(batch), memoryview(batch)) == is_removed
