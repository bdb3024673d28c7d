"""End offsets of leader epochs, as Kafka's LeaderEpochFileCache returns them."""

import pytest

from sluice.broker.log.leader_epochs import LeaderEpochs

LOG_END_OFFSET = 50


def epochs_of(*entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for epoch, start_offset in entries:
        epochs.assign(epoch, start_offset)
    return epochs


END_OFFSETS = {
    "an undefined epoch has no end offset": (-1, (-1, -1)),
    "the latest epoch ends at the log end offset": (9, (9, LOG_END_OFFSET)),
    "an epoch after the latest is unknown": (10, (-1, -1)),
    "an epoch ends at the start of the next": (2, (2, 20)),
    "an epoch without records ends with the previous one": (3, (2, 20)),
    "an epoch before the first known one ends at its start": (0, (0, 10)),
}


@pytest.mark.parametrize(("epoch", "expected"), END_OFFSETS.values(), ids=END_OFFSETS)
def test_end_offset(epoch: int, expected: tuple[int, int]) -> None:
    assert epochs_of((2, 10), (5, 20), (9, 30)).end_offset_for(epoch, LOG_END_OFFSET) == expected


def test_end_offset_of_an_empty_log_is_undefined() -> None:
    assert epochs_of().end_offset_for(0, 0) == (-1, -1)


EPOCHS = {
    "before the first epoch": (9, -1),
    "at the start of an epoch": (10, 2),
    "last offset of an epoch": (29, 5),
    "the latest epoch has no upper bound": (1000, 9),
}


@pytest.mark.parametrize(("offset", "expected"), EPOCHS.values(), ids=EPOCHS)
def test_epoch_at(offset: int, expected: int) -> None:
    assert epochs_of((2, 10), (5, 20), (9, 30)).at(offset) == expected


def test_assigning_an_epoch_again_keeps_its_first_start_offset() -> None:
    assert epochs_of((2, 10), (5, 20), (5, 25)).end_offset_for(2, LOG_END_OFFSET) == (2, 20)


def test_epoch_without_records_is_removed_when_the_next_one_starts() -> None:
    assert epochs_of((2, 10), (5, 20), (6, 20)).end_offset_for(5, LOG_END_OFFSET) == (2, 20)


START_TRUNCATIONS = {
    "before the first epoch: nothing is removed": (5, 2, 20),
    "at the start of an epoch: that epoch is kept": (20, 5, 30),
    "inside an epoch: its start moves": (25, 5, 30),
    "inside the latest epoch": (40, 9, LOG_END_OFFSET),
}


@pytest.mark.parametrize(("start", "oldest", "oldest_end_offset"), START_TRUNCATIONS.values(), ids=START_TRUNCATIONS)
def test_truncation_from_the_start_removes_earlier_epochs(start: int, oldest: int, oldest_end_offset: int) -> None:
    epochs = epochs_of((2, 10), (5, 20), (9, 30))
    epochs.truncate_from_start(start)
    assert epochs.at(max(start, 10)) == oldest
    assert epochs.at(min(start, 10) - 1) == -1
    assert epochs.end_offset_for(oldest, LOG_END_OFFSET) == (oldest, oldest_end_offset)
    assert epochs.end_offset_for(0, LOG_END_OFFSET) == (0, max(start, 10))


END_TRUNCATIONS = {
    "after the start of the last epoch": (31, 9, [(2, 20), (5, 30), (9, 31)]),
    "at the start of the last epoch": (30, 5, [(2, 20), (5, 30), (-1, -1)]),
    "inside the first epoch": (15, 2, [(2, 15), (-1, -1), (-1, -1)]),
    "at the start of the first epoch": (10, -1, [(-1, -1), (-1, -1), (-1, -1)]),
}


@pytest.mark.parametrize(("log_end_offset", "latest", "ends"), END_TRUNCATIONS.values(), ids=END_TRUNCATIONS)
def test_truncation_from_the_end_removes_later_epochs(
    log_end_offset: int, latest: int, ends: list[tuple[int, int]]
) -> None:
    epochs = epochs_of((2, 10), (5, 20), (9, 30))
    epochs.truncate_from_end(log_end_offset)
    assert epochs.latest == latest
    assert [epochs.end_offset_for(epoch, log_end_offset) for epoch in (2, 5, 9)] == ends
