"""The model of a trace (model.py) from what was recorded."""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Generic, TypeVar

from sluice.journal_events import AnyEvent, ConnectionRefused, Request

from .attempts import Attempts
from .findings.history import Found, History
from .findings.ranking import ranked
from .lanes import LaneTable
from .model import NONE, VERSION, Bars, Failure, Finding, Marks, Outcome, Phase, Trace
from .recording import FailedLine, Recorded, Run
from .timeline import Timeline

_NS_PER_US = 1_000
_LOOKUP = "Metadata"  # fails until a topic has been created and has a leader
_T = TypeVar("_T")


def build(recorded: Sequence[Recorded], run: Run) -> Trace:
    """Return the trace of one cluster or several, whose events have the same time axis."""
    start_ns = min(_starts(recorded, run), default=0)
    table = LaneTable()
    timelines = [
        Timeline(table, number, one.label, start_ns, _refused(one.events)) for number, one in enumerate(recorded)
    ]
    for timeline, one in zip(timelines, recorded, strict=True):
        for event in one.events:
            timeline.add(event)
    end_ns = max((*(each.end_ns for each in timelines), *_ends(run), start_ns))
    for timeline in timelines:
        timeline.end(end_ns)
    return _Model(table, timelines, recorded, start_ns).trace(run, end_ns)


def _starts(recorded: Sequence[Recorded], run: Run) -> Iterator[int]:
    for one in recorded:
        yield from map(_start_ns, one.events)
    yield from (phase.start_ns for phase in run.phases)
    yield from (line.at_ns for line in run.logs)


def _ends(run: Run) -> Iterator[int]:
    yield from (phase.end_ns for phase in run.phases)
    yield from (line.at_ns for line in run.logs)
    if run.failure is not None:
        yield run.failure.at_ns


def _start_ns(event: AnyEvent) -> int:
    return min(event.at_ns, event.received_ns) if isinstance(event, Request) else event.at_ns


def _refused(events: Sequence[AnyEvent]) -> set[int]:
    """Return the connections that were refused before their client was known."""
    return {each.connection for each in events if isinstance(each, ConnectionRefused) and not each.client_id}


class _Table(Generic[_T]):
    """Distinct values in order of first use."""

    def __init__(self) -> None:
        self._numbers: dict[_T, int] = {}

    def number(self, value: _T) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def values(self) -> list[_T]:
        return [*self._numbers]


class _Model:
    """The columns of timelines."""

    def __init__(
        self, table: LaneTable, timelines: Sequence[Timeline], recorded: Sequence[Recorded], start_ns: int
    ) -> None:
        self._table = table
        self._recorded = recorded
        self._start_ns = start_ns
        self._changes = [change for each in timelines for change in each.states.end()]
        self._bars = sorted(
            (bar for each in timelines for bar in each.bars), key=lambda bar: (bar.start_ns, bar.cluster, bar.seq)
        )
        self._marks = sorted((mark for each in timelines for mark in each.marks), key=itemgetter(0))
        self._bar_of = {(bar.cluster, bar.seq): number for number, bar in enumerate(self._bars) if bar.seq != NONE}
        self._marks_of: dict[tuple[int, int], list[int]] = {}
        for number, mark in enumerate(self._marks):
            self._marks_of.setdefault((mark.cluster, mark.seq), []).append(number)

    def trace(self, run: Run, end_ns: int) -> Trace:
        us = self._us
        moved = self._table.sort()
        attempts = self._attempts()
        retried = dict(attempts.links)
        outcomes: _Table[Outcome] = _Table()
        texts: _Table[str] = _Table()
        details: _Table[tuple[tuple[str, str], ...]] = _Table()
        bars = Bars(
            lane=[moved[bar.lane] for bar in self._bars],
            start=[us(bar.start_ns) for bar in self._bars],
            end=[us(max(bar.start_ns, bar.end_ns)) for bar in self._bars],
            outcome=[outcomes.number(self._outcome(number, retried)) for number in range(len(self._bars))],
            text=[texts.number(bar.text) for bar in self._bars],
            seq=[bar.seq for bar in self._bars],
            parked=[bar.parked for bar in self._bars],
            throttle=[bar.throttle for bar in self._bars],
            attempt=[attempts.chain_of(number) for number in range(len(self._bars))],
            detail=[details.number(bar.detail) if bar.detail else NONE for bar in self._bars],
            correlation_id=[bar.correlation_id for bar in self._bars],
            request_bytes=[bar.request_bytes for bar in self._bars],
            response_bytes=[bar.response_bytes for bar in self._bars],
        )
        marks = Marks(
            lane=[moved[mark.lane] for mark in self._marks],
            at=[us(mark.at_ns) for mark in self._marks],
            tone=[mark.tone for mark in self._marks],
            glyph=[mark.glyph for mark in self._marks],
            text=[texts.number(mark.text) for mark in self._marks],
            seq=[mark.seq for mark in self._marks],
        )
        failure = run.failure
        return Trace(
            version=VERSION,
            title=run.title,
            subtitle=run.subtitle,
            result=run.result,
            start_ns=self._start_ns,
            end=us(end_ns),
            lanes=self._table.lanes,
            bars=bars,
            outcomes=outcomes.values(),
            texts=texts.values(),
            details=[[*detail] for detail in details.values()],
            marks=marks,
            links=attempts.links,
            state=[
                (us(at_ns), section, key, value)
                for at_ns, section, key, value in sorted(self._changes, key=itemgetter(0))
            ],
            phases=[Phase(each.name, us(each.start_ns), us(each.end_ns), each.result) for each in run.phases],
            logs=[(us(line.at_ns), line.level, line.logger, line.text) for line in run.logs],
            findings=[self._finding(*each) for each in self._found(run, end_ns)],
            failure=None if failure is None else self._failure(failure),
        )

    def _outcome(self, number: int, retried: dict[int, int]) -> Outcome:
        """Return the outcome of a bar; the error of a lookup that a retry corrected is not drawn as one."""
        bar = self._bars[number]
        if bar.outcome.tone != "error" or not bar.text.startswith(_LOOKUP):
            return bar.outcome
        while number in retried:
            number = retried[number]
        return Outcome(bar.outcome.name, "neutral") if self._bars[number].outcome.tone == "ok" else bar.outcome

    def _failure(self, failure: FailedLine) -> Failure:
        at = NONE if failure.at_ns == NONE else self._us(failure.at_ns)
        return Failure(failure.text, failure.file, failure.line, at)

    def _found(self, run: Run, end_ns: int) -> list[tuple[int, Found]]:
        """Return findings with the numbers of their clusters, the most probable cause first."""
        failed_ns = None if run.failure is None or run.failure.at_ns == NONE else run.failure.at_ns
        histories = [History(one.events, self._start_ns, end_ns, failed_ns) for one in self._recorded]
        return ranked(histories, "" if run.failure is None else run.failure.text)

    def _finding(self, cluster: int, found: Found) -> Finding:
        places = [(cluster, seq) for seq in found.seqs]
        label = self._recorded[cluster].label
        return Finding(
            id=found.id,
            severity=found.severity,
            title=f"{label}: {found.title}" if label else found.title,
            text=found.text,
            at=self._us(found.at_ns),
            bars=[self._bar_of[place] for place in places if place in self._bar_of],
            marks=[mark for place in places for mark in self._marks_of.get(place, ())],
        )

    def _us(self, at_ns: int) -> int:
        return max(0, at_ns - self._start_ns) // _NS_PER_US

    def _attempts(self) -> Attempts:
        requests = [
            (self._bar_of[number, event.seq], event)
            for number, one in enumerate(self._recorded)
            for event in one.events
            if isinstance(event, Request)
        ]
        attempts = Attempts()
        for place, request in sorted(requests, key=itemgetter(0)):  # in the order in which they were received
            attempts.add(place, request)
        return attempts
