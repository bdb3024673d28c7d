"""Findings besides the statements: storms, stalls, duplicates, waits that fall back, clients that fail.

A storm has a rate that no probe's configuration causes. Of APIs that a workload calls constantly, only failures (Fetch)
or repeated batches (Produce) count. runs/ finds lost records by reading the log.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from sluice.audit.judge.model.attempts import AttemptSequence, Kind
from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.verdict import Finding, FindingKind
from sluice.journal_events import ConnectionOpened, Request

from .expected import Tolerance, number
from .observer import sequences
from .observer.outcomes import is_resent, maybe_unread
from .records import observed_until_ns, records
from .waits import Track, Wait, track, tracks

_NS_PER_MS = 1_000_000
STORM, STORM_MS = 200, 5000.0
_STALL_MS = 10_000.0
_STEADY_FROM, _WRAPPED_FROM = 8, 20
# As shares of the previous waits. Draws of -25 % to +50 % (librdkafka) count as steady.
_STEADY, _FELL_TO, _ROSE_TO = 0.65, 0.4, 0.7
_STEADY_BUT = 10  # one in this many waits may be shorter
_FEW_BESIDE = 0.1
# The steady wait is the median of at most this many last waits, and at least this long. A sequence of another run
# refutes a fall only with this many waits after it.
_STEADY_MOST, _STEADY_LEAST_MS, _AFTERWARDS = 40, 20.0, 4
CONNECTIONS = "connections"
_REPEATED = {"Produce": "repeated Produce"}
_MOST_APIS = 2
_ORDINARY = frozenset(("Fetch",))
_NO_BAND = Tolerance(0, 0)


class _Run(NamedTuple):
    observation: Observation
    found: list[AttemptSequence]


def findings(observations: Sequence[Observation]) -> list[Finding]:
    """Return the worst finding of each name. Of runs that the client made fail, only storms and the failure count."""
    runs = [
        _Run(one, [each for each in sequences(one.events) if not each.doubt])
        for one in observations
        if not one.problem or one.is_client_failure
    ]
    worst: dict[str, WeightedFinding] = {}
    for detect in _DETECTORS:
        for run in runs:
            if run.observation.problem and detect not in _OF_FAILED_RUNS:
                continue
            for weight, finding in detect(run):
                if detect is _wrapped and _is_refuted(finding, runs):
                    continue
                name = finding_name(finding)
                if name not in worst or weight > worst[name][0]:
                    worst[name] = weight, finding
    return [finding for _, finding in worst.values()]


def finding_name(finding: Finding) -> str:
    """Return its kind, and of a storm what came: `storm of connections` or `storm of requests`."""
    what = finding.measured.get("what") if finding.kind is FindingKind.STORM else None
    return finding.kind if what is None else f"storm of {what if what == CONNECTIONS else 'requests'}"


WeightedFinding = tuple[float, Finding]


def _storms(run: _Run) -> Iterator[WeightedFinding]:
    times: dict[str, list[int]] = {}
    for event in run.observation.events:
        if isinstance(event, ConnectionOpened):
            times.setdefault(CONNECTIONS, []).append(event.at_ns)
        elif isinstance(event, Request) and _counts(event):
            times.setdefault(event.api, []).append(event.received_ns)
    times["Produce"] = [attempt.at_ns for one in run.found if one.kind is Kind.PRODUCE for attempt in one.attempts[1:]]
    most = {what: _most_within(sorted(at_ns)) for what, at_ns in times.items()}
    storms = {what: count for what, count in most.items() if count >= STORM}
    if CONNECTIONS in storms:
        count = storms.pop(CONNECTIONS)
        yield count, _storm(run, CONNECTIONS, count, f"{count} {CONNECTIONS}")
    if storms:
        worst = sorted(storms, key=lambda api: -storms[api])
        words = " and ".join(f"{storms[api]} {_REPEATED.get(api, api)}" for api in worst[:_MOST_APIS])
        yield storms[worst[0]], _storm(run, worst[0], storms[worst[0]], f"{words} requests")


def _storm(run: _Run, what: str, count: int, words: str) -> Finding:
    why = f"{words} within {STORM_MS / 1e3:g} s"
    return _finding(run, FindingKind.STORM, why, {"what": what, "count": count, "within_ms": STORM_MS})


def _finding(run: _Run, kind: FindingKind, why: str, measured: Mapping[str, float | str], *shown: Track) -> Finding:
    return Finding(
        kind=kind,
        probe=run.observation.probe,
        why=why,
        measured={**measured, "repetition": _number(run)},
        series=[each.series(None, _NO_BAND) for each in shown],
    )


def _failed(run: _Run) -> Iterator[WeightedFinding]:
    if run.observation.problem:
        why = run.observation.problem.partition(";")[0]
        yield 1, Finding(kind=FindingKind.FAILED, probe=run.observation.probe, why=why, measured={"runs": 1})


def _counts(request: Request) -> bool:
    if request.api == "Produce":
        return False  # counted by repeated batches instead
    return request.api not in _ORDINARY or bool(request.error_codes) or request.answered_ns is None


def _most_within(at_ns: Sequence[int]) -> int:
    most, begin = 0, 0
    for end, until_ns in enumerate(at_ns):
        while until_ns - at_ns[begin] > STORM_MS * _NS_PER_MS:
            begin += 1
        most = max(most, end - begin + 1)
    return most


def _stalls(run: _Run) -> Iterator[WeightedFinding]:
    one = run.observation
    if one.fault_until_ns is None:
        return
    until_ns = observed_until_ns(one)
    observed_ms = (until_ns - one.fault_until_ns) / _NS_PER_MS
    if observed_ms < _STALL_MS or _is_done(one):
        return
    came = _came_ns(one)
    if not came or any(one.fault_until_ns < at_ns <= until_ns for at_ns in came):
        return  # the run failed before any request, or the client continued
    why = f"sent nothing for {observed_ms / 1e3:.0f} s after the fault ended"
    yield observed_ms, _finding(run, FindingKind.STALL, why, {"silent_ms": observed_ms})


def _came_ns(one: Observation) -> list[int]:
    return [
        event.received_ns if isinstance(event, Request) else event.at_ns
        for event in one.events
        if isinstance(event, Request | ConnectionOpened)
    ]


def _is_done(one: Observation) -> bool:
    assert one.fault_until_ns is not None, "the caller checked that the fault ended"
    sent = records(one.callbacks)
    return bool(sent) and all(each.end and each.ended_ns <= one.fault_until_ns for each in sent)


def _duplicates(run: _Run) -> Iterator[WeightedFinding]:
    cut = maybe_unread(run.observation.events, run.observation.lag_ms)
    timeout_ms = number(run.observation.subject.settings, "request.timeout.ms")
    again = [
        one
        for one in run.found
        if one.kind is Kind.PRODUCE and is_resent(one.attempts, cut, timeout_ms, run.observation.lag_ms)
    ]
    if again:
        why, shown = f"resent {len(again)} acknowledged batches, such as {again[0].key}", track(again[0], _number(run))
        yield len(again), _finding(run, FindingKind.DUPLICATE, why, {"batches": len(again)}, shown)


def _wrapped(run: _Run) -> Iterator[WeightedFinding]:
    if any(callback.event == "gave-up" for callback in run.observation.callbacks):
        return
    for waited in tracks(_alone(run.found), run.observation.repetition):
        fell = _fell_back(waited.waits)
        if fell is None:
            continue
        wait, steady_ms = fell
        failures = wait.failures + 1
        why = f"waited {wait.waited_ms:.0f} ms after {failures} failures in a row, but {steady_ms:.0f} ms before that"
        measured = {"failures": failures, "waited_ms": wait.waited_ms, "before_ms": steady_ms}
        yield wait.failures, _finding(run, FindingKind.WRAPPED, why, measured, waited)


def _alone(found: Sequence[AttemptSequence]) -> Iterator[AttemptSequence]:
    """Leave out overlapping connect sequences to one broker: an attempt may be in the wrong one."""
    connects = [one for one in found if one.kind is Kind.CONNECT]
    for one in found:
        first, last = one.attempts[0], one.attempts[-1]
        beside = sum(
            first.at_ns < attempt.at_ns < last.at_ns
            for other in connects
            if other is not one and other.attempts[0].broker == first.broker
            for attempt in other.attempts
        )
        if one.kind is not Kind.CONNECT or beside <= len(one.attempts) * _FEW_BESIDE:
            yield one


def _fell_back(waits: Sequence[Wait]) -> tuple[Wait, float] | None:
    in_row: list[float] = []
    bounded = [wait for wait in waits if not wait.may_be_shorter and not wait.may_be_longer]
    for wait, following in pairwise(bounded):
        if wait.failures == 0:
            in_row.clear()
        if len(in_row) >= _WRAPPED_FROM:
            steady = in_row[_STEADY_FROM:][-_STEADY_MOST:]
            steady_ms = median(steady)
            least_ms = sorted(steady)[len(steady) // _STEADY_BUT]
            was_steady = steady_ms >= _STEADY_LEAST_MS and least_ms >= _STEADY * steady_ms
            if was_steady and wait.waited_ms < _FELL_TO * steady_ms and following.waited_ms < _ROSE_TO * steady_ms:
                return wait, steady_ms
        in_row.append(wait.waited_ms)
    return None


def _is_refuted(finding: Finding, runs: Sequence[_Run]) -> bool:
    """Return whether a longer sequence of another run did not fall back there: a counter wraps in every run."""
    failures, before_ms = finding.measured["failures"], finding.measured["before_ms"]
    assert isinstance(failures, float | int), "measured by _wrapped"
    assert isinstance(before_ms, float | int), "measured by _wrapped"
    others = [
        waited.waits
        for run in runs
        if _number(run) != finding.measured["repetition"]
        for waited in tracks(run.found, _number(run))
        if waited.sequence.kind is finding.series[0].kind
    ]
    return any(
        min(wait.waited_ms for wait in waits if abs(wait.failures + 1 - failures) <= 1) >= _FELL_TO * before_ms
        for waits in others
        if waits and max(wait.failures for wait in waits) > failures + _AFTERWARDS
    )


def _number(run: _Run) -> int:
    return run.observation.repetition


_Detector = Callable[[_Run], Iterator[WeightedFinding]]
_OF_FAILED_RUNS: Iterable[_Detector] = (_storms, _failed)
_DETECTORS: Iterable[_Detector] = (_storms, _stalls, _duplicates, _wrapped, _failed)
