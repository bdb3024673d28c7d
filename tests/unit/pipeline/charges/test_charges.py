"""Packed charges on their way to a replay: order, connections, and the trace without the waits that clients served."""

import pytest

from sluice.pipeline.charges.charges import (
    MOST_TEXT,
    QUARANTINED,
    Client,
    Columns,
    Gathered,
    Quarantined,
    Requests,
    lane_of,
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
    """Seconds, bytes, lane and the row that follows on it."""
    assert requests is not None
    at_s = [at_ns // S for at_ns in requests.at_ns]
    return list(zip(at_s, requests.value, requests.lane, requests.following, strict=True))


def test_parts_come_together_in_the_order_of_time() -> None:
    parts = [packed([(5, 50, 7, 0), (7, 70, 7, 0)]), packed([(1, 10, 7, 0), (6, 60, 7, 0)])]
    found = requests_of(parts, undelayed=False)
    assert trace(found) == [(1, 10, 0, 1), (5, 50, 0, 2), (6, 60, 0, 3), (7, 70, 0, 4)]


def test_what_came_at_one_time_stays_in_the_order_in_which_it_was_read() -> None:
    parts = [packed([(1, 10, 7, 0), (1, 20, 7, 0)]), packed([(1, 30, 7, 0), (0, 5, 7, 0)])]
    assert [value for _, value, *_ in trace(requests_of(parts, undelayed=True))] == [5, 10, 20, 30]


def test_connections_are_numbered_and_linked() -> None:
    found = requests_of([packed([(1, 10, 9, 0), (2, 20, 4, 0), (3, 30, 9, 0), (4, 40, 4, 0)])], undelayed=True)
    assert trace(found) == [(1, 10, 1, 2), (2, 20, 0, 3), (3, 30, 1, 4), (4, 40, 0, 4)]


def test_a_connection_has_its_request_version() -> None:
    found = requests_of([packed([(1, 10, 1, 0)], version=2), packed([(2, 10, 2, 0)], version=11)], undelayed=True)
    assert found is not None
    assert list(found.versions) == [2, 11]


@pytest.mark.parametrize(
    ("rows", "at_s"),
    [
        pytest.param(
            [(1, 9, 1, 0), (2, 9, 1, 3000), (5, 9, 1, 0), (6, 9, 1, 0)], [1, 2, 2, 3], id="a wait is taken off"
        ),
        pytest.param([(1, 9, 1, 3000), (9, 9, 1, 0)], [1, 6], id="what came later than the wait was own time"),
        pytest.param([(1, 9, 1, 9000), (3, 9, 1, 0)], [1, 1], id="a wait that was not served is taken off as it was"),
        pytest.param([(1, 9, 1, 2000), (2, 9, 2, 0), (4, 9, 1, 0)], [1, 2, 2], id="only of its own connection"),
        pytest.param([(1, 0, 1, 2000), (3, 9, 1, 0)], [1], id="a fetch without bytes is gone, and so is its wait"),
    ],
)
def test_the_trace_without_waits(rows: list[Row], at_s: list[int]) -> None:
    assert [each[0] for each in trace(requests_of([packed(rows)], undelayed=True))] == at_s


def test_the_trace_as_it_was_has_the_waits_but_not_what_brought_nothing() -> None:
    rows = [(1, 9, 1, 2000), (3, 9, 1, 0), (4, 0, 1, 1000), (5, 9, 1, 0)]
    assert [each[0] for each in trace(requests_of([packed(rows)], undelayed=False))] == [1, 3, 5]


def test_a_client_that_was_served_nothing_has_no_trace() -> None:
    assert requests_of([packed([(1, 0, 1, 2000)])], undelayed=True) is None


def test_gathering_is_full_at_so_many_rows_and_empty_when_all_were_taken() -> None:
    gathered = Gathered("client-id", 3)
    for number in range(3):
        assert not gathered.is_full
        gathered.columns("Produce", 1, "User:bob", f"c{number % 2}").append(0, 1, 0, 0)
    full, (charges, _) = gathered.is_full, gathered.take()
    assert full
    assert set(charges) == {Client("Produce", "1", "", "c0"), Client("Produce", "1", "", "c1")}
    assert gathered.take() == ({}, [])


def test_clients_that_are_counted_together_stay_in_order() -> None:
    gathered = Gathered("client-id", 10)
    for value, principal in [(1, "User:a"), (2, "User:b"), (3, "User:a")]:
        gathered.columns("Produce", 1, principal, "c").append(0, value, 0, 0)
    ((_, rows),) = gathered.take()[0].items()
    assert [value for _, value, *_ in trace(requests_of([rows], undelayed=True))] == [1, 2, 3]


def test_what_is_quarantined_is_counted_and_kept_to_a_length() -> None:
    gathered = Gathered("client-id", 10)
    gathered.quarantine("a.log", 7, "no event", "x" * 5000)
    assert gathered.take()[1] == [Quarantined("a.log", 7, "no event", "x" * MOST_TEXT)]
    assert gathered.counts == {QUARANTINED: 1}
