"""End offsets of leader epochs, as Kafka's LeaderEpochFileCache returns them."""

import pytest

from sluice.broker.log.leader_epochs import LeaderEpochs

LOG_END_OFFSET = 50


def epochs_of(*entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for epoch, start_offset in entries:
        epochs.assign(epoch, start_offset)
    return epochs


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        pytest.param(-1, (-1, -1), id="an undefined epoch has no end offset"),
        pytest.param(9, (9, LOG_END_OFFSET), id="the latest epoch ends at the log end offset"),
        pytest.param(10, (-1, -1), id="an epoch after the latest is unknown"),
        pytest.param(2, (2, 20), id="an epoch ends at the start of the next"),
        pytest.param(3, (2, 20), id="an epoch without records ends with the previous one"),
        pytest.param(0, (0, 10), id="an epoch before the first known one ends at its start"),
    ],
)
def test_end_offset(epoch: int, expected: tuple[int, int]) -> None:
    assert epochs_of((2, 10), (5, 20), (9, 30)).end_offset_for(epoch, LOG_END_OFFSET) == expected


def test_end_offset_of_an_empty_log_is_undefined() -> None:
    assert epochs_of().end_offset_for(0, 0) == (-1, -1)


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        pytest.param(9, -1, id="before the first epoch"),
        pytest.param(10, 2, id="at the start of an epoch"),
        pytest.param(29, 5, id="last offset of an epoch"),
        pytest.param(1000, 9, id="the latest epoch has no upper bound"),
    ],
)
def test_epoch_at(offset: int, expected: int) -> None:
    assert epochs_of((2, 10), (5, 20), (9, 30)).at(offset) == expected


def test_assigning_an_epoch_again_keeps_its_first_start_offset() -> None:
    assert epochs_of((2, 10), (5, 20), (5, 25)).end_offset_for(2, LOG_END_OFFSET) == (2, 20)


def test_epoch_without_records_is_removed_when_the_next_one_starts() -> None:
    assert epochs_of((2, 10), (5, 20), (6, 20)).end_offset_for(5, LOG_END_OFFSET) == (2, 20)


@pytest.mark.parametrize(
    ("start", "oldest", "oldest_end_offset"),
    [
        pytest.param(5, 2, 20, id="before the first epoch: nothing is removed"),
        pytest.param(20, 5, 30, id="at the start of an epoch: that epoch is kept"),
        pytest.param(25, 5, 30, id="inside an epoch: its start moves"),
        pytest.param(40, 9, LOG_END_OFFSET, id="inside the latest epoch"),
    ],
)
def test_truncation_from_the_start_removes_earlier_epochs(start: int, oldest: int, oldest_end_offset: int) -> None:
    epochs = epochs_of((2, 10), (5, 20), (9, 30))
    epochs.truncate_from_start(start)
    assert epochs.at(max(start, 10)) == oldest
    assert epochs.at(min(start, 10) - 1) == -1
    assert epochs.end_offset_for(oldest, LOG_END_OFFSET) == (oldest, oldest_end_offset)
    assert epochs.end_offset_for(0, LOG_END_OFFSET) == (0, max(start, 10))


@pytest.mark.parametrize(
    ("log_end_offset", "latest", "ends"),
    [
        pytest.param(31, 9, [(2, 20), (5, 30), (9, 31)], id="after the start of the last epoch"),
        pytest.param(30, 5, [(2, 20), (5, 30), (-1, -1)], id="at the start of the last epoch"),
        pytest.param(15, 2, [(2, 15), (-1, -1), (-1, -1)], id="inside the first epoch"),
        pytest.param(10, -1, [(-1, -1), (-1, -1), (-1, -1)], id="at the start of the first epoch"),
    ],
)
def test_truncation_from_the_end_removes_later_epochs(
    log_end_offset: int, latest: int, ends: list[tuple[int, int]]
) -> None:
    epochs = epochs_of((2, 10), (5, 20), (9, 30))
    epochs.truncate_from_end(log_end_offset)
    assert epochs.latest == latest
    assert [epochs.end_offset_for(epoch, log_end_offset) for epoch in (2, 5, 9)] == ends
