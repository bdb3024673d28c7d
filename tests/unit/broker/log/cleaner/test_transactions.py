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


@pytest.mark.parametrize(
    ("batch", "is_removed"),
    [
        pytest.param(marker(COMMIT), True, id="commit of a transaction without records"),
        pytest.param(marker(ABORT), True, id="abort of a transaction without records"),
        pytest.param(build_batch((), base_offset=1, control=True), True, id="batch of a removed marker"),
        pytest.param(
            build_batch((Record(1, 0, b"\0\0\0\2", b"", ()),), base_offset=1, control=True),
            False,
            id="control record of another type",
        ),
        pytest.param(build_batch((Record(1, 0, None, b"", ()),), base_offset=1), False, id="records"),
    ],
)
def test_control_batches_without_use_are_removed(batch: bytes, is_removed: bool) -> None:
    assert CleanedTransactions([]).is_useless(read_header(batch), memoryview(batch)) == is_removed
