"""Which leader epoch ends where: the answers of Kafka's LeaderEpochFileCache."""

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
        pytest.param(-1, (-1, -1), id="an undefined epoch has no end"),
        pytest.param(9, (9, LOG_END_OFFSET), id="the latest epoch ends at the end of the log"),
        pytest.param(10, (-1, -1), id="an epoch after the latest is unknown"),
        pytest.param(2, (2, 20), id="an epoch ends where the next one begins"),
        pytest.param(3, (2, 20), id="an epoch without records ends with the one before it"),
        pytest.param(0, (0, 10), id="an epoch before all known ones ends where they begin"),
    ],
)
def test_end_offset(epoch: int, expected: tuple[int, int]) -> None:
    assert epochs_of((2, 10), (5, 20), (9, 30)).end_offset_for(epoch, LOG_END_OFFSET) == expected


def test_nothing_is_known_of_an_empty_log() -> None:
    assert epochs_of().end_offset_for(0, 0) == (-1, -1)


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        pytest.param(9, -1, id="before the first"),
        pytest.param(10, 2, id="at the start of an epoch"),
        pytest.param(29, 5, id="the last of an epoch"),
        pytest.param(1000, 9, id="the latest goes on"),
    ],
)
def test_epoch_at(offset: int, expected: int) -> None:
    assert epochs_of((2, 10), (5, 20), (9, 30)).at(offset) == expected


def test_an_epoch_is_assigned_once() -> None:
    assert epochs_of((2, 10), (5, 20), (5, 25)).end_offset_for(2, LOG_END_OFFSET) == (2, 20)


def test_an_epoch_that_wrote_nothing_is_forgotten() -> None:
    assert epochs_of((2, 10), (5, 20), (6, 20)).end_offset_for(5, LOG_END_OFFSET) == (2, 20)


@pytest.mark.parametrize(
    ("start", "oldest", "end_of_oldest"),
    [
        pytest.param(5, 2, 20, id="before all: nothing is forgotten"),
        pytest.param(20, 5, 30, id="at the start of an epoch: that one is kept"),
        pytest.param(25, 5, 30, id="inside an epoch: it begins there now"),
        pytest.param(40, 9, LOG_END_OFFSET, id="inside the latest"),
    ],
)
def test_truncation_from_the_start(start: int, oldest: int, end_of_oldest: int) -> None:
    epochs = epochs_of((2, 10), (5, 20), (9, 30))
    epochs.truncate_from_start(start)
    assert epochs.at(max(start, 10)) == oldest
    assert epochs.at(min(start, 10) - 1) == -1
    assert epochs.end_offset_for(oldest, LOG_END_OFFSET) == (oldest, end_of_oldest)
    assert epochs.end_offset_for(0, LOG_END_OFFSET) == (0, max(start, 10))


@pytest.mark.parametrize(
    ("log_end_offset", "latest", "ends"),
    [
        pytest.param(31, 9, [(2, 20), (5, 30), (9, 31)], id="behind where the last begins"),
        pytest.param(30, 5, [(2, 20), (5, 30), (-1, -1)], id="where the last begins"),
        pytest.param(15, 2, [(2, 15), (-1, -1), (-1, -1)], id="inside the first"),
        pytest.param(10, -1, [(-1, -1), (-1, -1), (-1, -1)], id="where the first begins"),
    ],
)
def test_truncation_forgets_epochs_that_began_later(
    log_end_offset: int, latest: int, ends: list[tuple[int, int]]
) -> None:
    epochs = epochs_of((2, 10), (5, 20), (9, 30))
    epochs.truncate_from_end(log_end_offset)
    assert epochs.latest == latest
    assert [epochs.end_offset_for(epoch, log_end_offset) for epoch in (2, 5, 9)] == ends
