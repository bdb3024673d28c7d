"""Brokers that were down, and elections: partitions without a leader, lost records, and leaders that moved."""

from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from sluice.journal_events import NO_ID, BrokerState, LeaderChange
from sluice.trace.described import counted, has_failed
from sluice.trace.model import Severity

from .history import NS_PER_S, Found, History, duration, grouped, listed, number_value, seqs

_LONG_NS = NS_PER_S
_ALL = -1  # acks=all
_DOWN = frozenset({"stopped", "isolated"})


def elections(history: History) -> Iterator[Found]:
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
        text += f"{counted(first.lost_records, 'record')} of broker {first.before}. {_reason_of_loss(history, first)}"
        yield Found("lost-records", "error", title, text, first.at_ns, seqs(alike), [topic])


def _reason_of_loss(history: History, change: LeaderChange) -> str:
    """Return whether the records had been acknowledged by all in-sync replicas, and how to prevent the loss."""
    produced = [
        one
        for one in history.apis("Produce")
        if not has_failed(one)
        and one.at_ns <= change.at_ns
        and any((each.topic, each.partition) == (change.topic, change.partition) for each in one.partitions)
    ]
    acks = {number_value(one.sent, "acks") for one in produced}
    if acks != {_ALL}:
        return "Set acks=all and min.insync.replicas=2 to not lose acknowledged records."
    down = next((span for span in _down(history, change.broker) if any(span.has(one.at_ns) for one in produced)), None)
    remedy = "Set min.insync.replicas=2, so that acks=all requires a second replica"
    if down is None:
        return f"They were sent with acks=all. {remedy}."
    return (
        f"They were sent with acks=all, but acknowledged while broker {change.broker} was {down.state} and not in sync "
        f"({history.when(down.from_ns)} to {history.when(down.until_ns)}): the in-sync replicas had shrunk, and this "
        f"was an unclean election. {remedy}, and unclean.leader.election.enable=false."
    )


class _Down(NamedTuple):
    """A time in which a broker was stopped or isolated."""

    state: str
    from_ns: int
    until_ns: int

    def has(self, at_ns: int) -> bool:
        return self.from_ns <= at_ns <= self.until_ns


def _down(history: History, node_id: int) -> list[_Down]:
    spans: list[_Down] = []
    begun: BrokerState | None = None
    for event in history.of(BrokerState):
        if event.broker != node_id:
            continue
        if event.state in _DOWN and begun is None:
            begun = event
        elif event.state == "running" and begun is not None:
            spans.append(_Down(begun.state, begun.at_ns, event.at_ns))
            begun = None
    return spans


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
    """Yield partitions whose leader stopped or was isolated, and that got no other until the failure, or the end."""
    until_ns = history.end_ns if history.failed_ns is None else history.failed_ns
    until = "until the end" if history.failed_ns is None else "until the test failed"
    led: dict[tuple[str, int], tuple[int, int]] = {}  # leader, and since when
    for request in history.apis("Produce", "ListOffsets"):
        if not has_failed(request) and request.at_ns <= until_ns:
            for one in request.partitions:
                led[one.topic, one.partition] = request.broker, request.at_ns
    for change in changes:
        if change.at_ns > until_ns:
            break
        led[change.topic, change.partition] = max(
            led.get((change.topic, change.partition), (NO_ID, 0)), (change.broker, change.at_ns), key=itemgetter(1)
        )
    states = {event.broker: event for event in history.of(BrokerState) if event.at_ns <= until_ns}
    down = {node_id: event for node_id, event in states.items() if event.state in _DOWN}
    stopped = [(place, *led[place]) for place in led if led[place][0] in down]
    stopped = [one for one in stopped if one[2] <= down[one[1]].at_ns < until_ns - _LONG_NS]
    for (topic, node_id), alike in grouped(stopped, lambda one: (one[0][0], one[1])).items():
        event = down[node_id]
        names = listed("{}-{}".format(*place) for place, _, _ in alike)
        when = history.when(event.at_ns)
        if event.state == "isolated":
            title = f"{names} had an isolated leader {until}: broker {node_id}"
            text = f"Broker {node_id} was isolated at {when}, and no other leader was elected."
        else:
            title = f"{names} had no leader {until}: broker {node_id} stopped"
            after = duration(until_ns - event.at_ns)
            text = f"Broker {node_id} stopped at {when} and did not move its leaders first. The controller had not "
            text += f"fenced it {after} later: another replica is elected after broker.session.timeout.ms."
        yield Found("election-without-leader", "error", title, text, event.at_ns, [event.seq], [topic])


_AT_END_NS = NS_PER_S  # brokers stop with the test
_UP = frozenset({"running"})


def broker_states(history: History) -> Iterator[Found]:
    """Yield brokers that were stopped, isolated or fenced: the context of most other findings."""
    for node_id, states in grouped(history.of(BrokerState), lambda event: event.broker).items():
        down = [one for one in states if one.state in _DOWN and one.at_ns < history.end_ns - _AT_END_NS]
        if not down:
            continue
        first = down[0]
        again = next((one for one in states if one.seq > first.seq and one.state in _UP), None)
        until = "until the end" if again is None else f"for {duration(again.at_ns - first.at_ns)}"
        title = f"Broker {node_id} was {first.state} at {history.when(first.at_ns)} {until}"
        severity: Severity = "warning" if again is None else "info"
        yield Found("broker-down", severity, title, "", first.at_ns, seqs(states), [])


_INTERNAL = "__"


def leaders_moved(history: History) -> Iterator[Found]:
    """Yield leaders that moved, by topic: the context of errors of clients that still sent to the old one."""
    moved = [one for one in history.of(LeaderChange) if NO_ID not in (one.before, one.broker)]
    moved = [one for one in moved if not one.topic.startswith(_INTERNAL)]
    for topic, changes in grouped(moved, lambda one: one.topic).items():
        first = changes[0]
        names = listed(f"{topic}-{one.partition} from broker {one.before} to {one.broker}" for one in changes)
        title = f"The leader moved at {history.when(first.at_ns)}: {names}"
        yield Found("leader-moved", "info", title, "", first.at_ns, seqs(changes), [topic])
