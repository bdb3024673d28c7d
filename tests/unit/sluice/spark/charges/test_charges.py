"""Packed charges for a replay: order, lanes, and the trace without empty fetches."""

import pytest

from sluice.spark.charges.charges import (
    MOST_TEXT,
    QUARANTINED,
    Client,
    Columns,
    Gathered,
    Quarantined,
    Requests,
    lane_of,
    recorded,
    requests_of,
)

S = 1_000_000_000

Row = tuple[int, int, int, int]  # seconds, bytes, connection, throttle time in ms


def packed(rows: list[Row], version: int = 9) -> bytes:
    columns = Columns()
    for at_s, value, connection, throttle_ms in rows:
        columns.append(at_s * S, value, lane_of(connection, version), throttle_ms)
    return columns.pack()


def trace(requests: Requests | None) -> list[tuple[int, int, int, int]]:
    """Return seconds, bytes, lane and the next row of the lane."""
    assert requests is not None
    at_s = [at_ns // S for at_ns in requests.at_ns]
    return list(zip(at_s, requests.value, requests.lane, requests.following, strict=True))


def test_parts_are_merged_by_time() -> None:
    parts = [packed([(5, 50, 7, 0), (7, 70, 7, 0)]), packed([(1, 10, 7, 0), (6, 60, 7, 0)])]
    found = requests_of(parts)
    assert trace(found) == [(1, 10, 0, 1), (5, 50, 0, 2), (6, 60, 0, 3), (7, 70, 0, 4)]


def test_rows_of_equal_time_keep_the_order_of_the_input() -> None:
    parts = [packed([(1, 10, 7, 0), (1, 20, 7, 0)]), packed([(1, 30, 7, 0), (0, 5, 7, 0)])]
    assert [value for _, value, *_ in trace(requests_of(parts))] == [5, 10, 20, 30]


def test_connections_are_numbered_and_linked() -> None:
    found = requests_of([packed([(1, 10, 9, 0), (2, 20, 4, 0), (3, 30, 9, 0), (4, 40, 4, 0)])])
    assert trace(found) == [(1, 10, 1, 2), (2, 20, 0, 3), (3, 30, 1, 4), (4, 40, 0, 4)]


def test_a_connection_has_its_request_version() -> None:
    found = requests_of([packed([(1, 10, 1, 0)], version=2), packed([(2, 10, 2, 0)], version=11)])
    assert found is not None
    assert list(found.versions) == [2, 11]


def test_the_recorded_trace_has_throttle_times_but_no_empty_fetches() -> None:
    rows = [(1, 9, 1, 2000), (3, 9, 1, 0), (4, 0, 1, 1000), (5, 9, 1, 0)]
    assert [each[0] for each in trace(requests_of([packed(rows)]))] == [1, 3, 5]


def test_a_client_without_served_requests_has_no_trace() -> None:
    assert requests_of([packed([(1, 0, 1, 2000)])]) is None


ABANDONED = {
    "without throttle times": ([(1, 9, 1, 0), (2, 7, 1, 0)], False, 0),
    "a throttled request before another one": ([(1, 9, 1, 3000), (5, 7, 1, 0)], True, 0),
    "the last request of a connection": ([(5, 7, 1, 3000), (1, 9, 1, 3000)], True, 7),
    "of each connection": ([(1, 9, 1, 3000), (2, 7, 2, 3000), (3, 1, 3, 0)], True, 16),
}


@pytest.mark.parametrize(("rows", "was_throttled", "abandoned"), ABANDONED.values(), ids=ABANDONED)
def test_a_throttled_request_without_a_later_one_is_abandoned(
    rows: list[Row], was_throttled: bool, abandoned: int
) -> None:
    found = recorded([packed(rows[:1]), packed(rows[1:])])
    assert (found.was_throttled, found.abandoned_bytes) == (was_throttled, abandoned)


def test_gathered_rows_are_bounded_and_can_be_taken() -> None:
    gathered = Gathered("client-id", 3)
    for number in range(3):
        assert not gathered.is_full
        gathered.columns("Produce", 1, "User:bob", f"c{number % 2}").append(0, 1, 0, 0)
    full, (charges, _) = gathered.is_full, gathered.take()
    assert full
    assert set(charges) == {Client("Produce", "1", "", "c0"), Client("Produce", "1", "", "c1")}
    assert gathered.take() == ({}, [])


def test_rows_of_clients_with_one_quota_stay_in_order() -> None:
    gathered = Gathered("client-id", 10)
    for value, principal in [(1, "User:a"), (2, "User:b"), (3, "User:a")]:
        gathered.columns("Produce", 1, principal, "c").append(0, value, 0, 0)
    ((_, rows),) = gathered.take()[0].items()
    assert [value for _, value, *_ in trace(requests_of([rows]))] == [1, 2, 3]


def test_quarantined_text_is_counted_and_truncated() -> None:
    gathered = Gathered("client-id", 10)
    gathered.quarantine("a.log", 7, "no event", "x" * 5000)
    assert gathered.take()[1] == [Quarantined("a.log", 7, "no event", "x" * MOST_TEXT)]
    assert gathered.counts == {QUARANTINED: 1}
