"""Partitions without a leader, and records that were lost at an election."""

from collections.abc import Iterator
from operator import itemgetter

from sluice.journal_events import NO_ID, BrokerState, LeaderChange
from sluice.trace.described import counted, has_failed
from sluice.trace.findings.history import NS_PER_S, Found, History, duration, grouped, listed, seqs
from sluice.trace.model import Severity

_LONG_NS = NS_PER_S
_DOWN = frozenset({"stopped", "isolated"})


def find(history: History) -> Iterator[Found]:
    changes = history.of(LeaderChange)
    yield from _lost_records(history, [each for each in changes if each.lost_records])
    yield from _without_leader(history, changes)
    yield from _no_election(history, changes)


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


def _no_election(history: History, changes: list[LeaderChange]) -> Iterator[Found]:
    """Yield partitions whose leader stopped or was isolated, and that got no other until the end."""
    led: dict[tuple[str, int], tuple[int, int]] = {}  # leader, and since when
    for request in history.apis("Produce", "ListOffsets"):
        if not has_failed(request):
            for one in request.partitions:
                led[one.topic, one.partition] = request.broker, request.at_ns
    for change in changes:
        led[change.topic, change.partition] = max(
            led.get((change.topic, change.partition), (NO_ID, 0)), (change.broker, change.at_ns), key=itemgetter(1)
        )
    states = {event.broker: event for event in history.of(BrokerState)}
    down = {node_id: event for node_id, event in states.items() if event.state in _DOWN}
    stopped = [(place, *led[place]) for place in led if led[place][0] in down]
    stopped = [one for one in stopped if one[2] <= down[one[1]].at_ns < history.end_ns - _LONG_NS]
    for (topic, node_id), alike in grouped(stopped, lambda one: (one[0][0], one[1])).items():
        event = down[node_id]
        names = listed("{}-{}".format(*place) for place, _, _ in alike)
        title = f"{names} had no leader until the end: broker {node_id} is {event.state}"
        text = f"Broker {node_id} was {event.state} at {history.when(event.at_ns)}, and no other leader was elected."
        yield Found("election-without-leader", "error", title, text, event.at_ns, [event.seq], [topic])
