"""Partitions without a leader, and records that were lost at an election."""

from collections.abc import Iterator

from sluice.journal_events import NO_ID, LeaderChange
from sluice.trace.described import counted
from sluice.trace.findings.history import NS_PER_S, Found, History, duration, grouped, listed, seqs
from sluice.trace.model import Severity

_LONG_NS = NS_PER_S


def find(history: History) -> Iterator[Found]:
    changes = history.of(LeaderChange)
    yield from _lost_records(history, [each for each in changes if each.lost_records])
    yield from _without_leader(history, changes)


def _lost_records(history: History, changes: list[LeaderChange]) -> Iterator[Found]:
    for topic, alike in grouped(changes, lambda one: one.topic).items():
        first = alike[0]
        lost = sum(each.lost_records for each in alike)
        partitions = listed(f"{topic}-{each.partition}" for each in alike)
        title = f"{counted(lost, 'record')} of {partitions} lost at an election"
        text = f"At {history.when(first.at_ns)}, broker {first.broker} became the leader without the last "
        text += (
            f"{counted(first.lost_records, 'record')} of broker {first.before}. Set acks=all and min.insync.replicas=2 "
        )
        text += "to not lose acknowledged records."
        yield Found("lost-records", "error", title, text, first.at_ns, seqs(alike), [topic])


def _without_leader(history: History, changes: list[LeaderChange]) -> Iterator[Found]:
    gaps: list[tuple[LeaderChange, int | None]] = []
    for alike in grouped(changes, lambda one: (one.topic, one.partition)).values():
        for number, change in enumerate(alike):
            if change.broker == NO_ID:
                after = alike[number + 1].at_ns if number + 1 < len(alike) else None
                gaps.append((change, after))
    for (topic, is_open), alike_gaps in grouped(gaps, lambda gap: (gap[0].topic, gap[1] is None)).items():
        first = alike_gaps[0][0]
        longest_ns = max((until or history.end_ns) - change.at_ns for change, until in alike_gaps)
        names = listed(f"{topic}-{change.partition}" for change, _ in alike_gaps)
        until = "until the end" if is_open else f"for {duration(longest_ns)}"
        title = f"{names} had no leader {until}"
        isr = ", ".join(map(str, first.isr)) or "empty"
        text = f"From {history.when(first.at_ns)}, after broker {first.before}; in-sync replicas: {isr}."
        if is_open:
            text += " No in-sync replica is available: start one of them, or elect an unclean leader."
        severity: Severity = "error" if is_open or longest_ns >= _LONG_NS else "info"
        shown = [change.seq for change, _ in alike_gaps]
        yield Found("election-without-leader", severity, title, text, first.at_ns, shown, [topic])
