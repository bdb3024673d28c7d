"""Verdicts on spans equal the verdicts of the audit on all events."""

from sluice.audit.judge import judge_sequence
from sluice.audit.judge.observer import sequences
from sluice.spark.backoff.rows import DEFAULTS, VerdictRow, host_of, rows_of_journal
from sluice.spark.backoff.spans import KINDS, HostEvent, Limits
from tests.support.fleet import fleet


def _by_host() -> dict[str, list[HostEvent]]:
    found: dict[str, list[HostEvent]] = {}
    for event in fleet(8):
        if isinstance(event, KINDS):
            found.setdefault(host_of(event.peer), []).append(event)
    return found


def _rows() -> list[VerdictRow]:
    return [row for host, events in _by_host().items() for row in rows_of_journal(host, events, DEFAULTS, Limits())]


def test_verdicts_equal_those_on_all_events() -> None:
    expected = []
    for host, events in _by_host().items():
        for sequence in sequences(events):
            if len(sequence.attempts) > 1:
                verdict = judge_sequence(sequence, DEFAULTS)
                expected.append((host, sequence.kind, sequence.key, len(sequence.attempts), verdict.state, verdict.why))
    found = [(row.host, row.kind, row.key, row.attempts, row.state, row.why) for row in _rows()]
    assert sorted(found) == sorted(expected)
    assert len(found) == 16


def test_each_client_is_judged_by_its_own_backoff() -> None:
    states = {(row.client_id, row.kind): row.state for row in _rows()}
    assert states["shop-0", "produce"] == states["shop-0", "connect"] == "pass"
    assert states["shop-1", "produce"] == states["shop-3", "produce"] == "deviates"


def test_a_row_identifies_the_client_and_has_the_figures() -> None:
    (row,) = (row for row in _rows() if (row.client_id, row.kind) == ("shop-1", "produce"))
    assert (row.host, row.software, row.key) == ("10.0.0.2", "lib 1.0", "orders-0@4001.0.40")
    assert (row.attempts, len(row.waits_ms), row.model) == (9, 8, "constant")
    assert row.base_ms is not None
    assert 90 <= row.base_ms <= 110


def test_the_order_of_events_does_not_matter() -> None:
    host, events = next(iter(_by_host().items()))
    turned = list(rows_of_journal(host, events[::-1], DEFAULTS, Limits()))
    assert turned == list(rows_of_journal(host, events, DEFAULTS, Limits()))
