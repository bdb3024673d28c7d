"""Splits sequences of attempts where a call ended: the next attempt is a new call, after a wait of the application.

A driver reports the ends of calls. For clients that send all requests within a call, they split all kinds of requests.
Of a command only the requests are known: a wait that falls back, or grows by more than doubling allows, may begin a
new call. Failed requests at the intervals that follow successful ones have the rhythm of the application (or of
`heartbeat.interval.ms`): each is a new call.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median

import msgspec

from sluice.audit.judge.model.attempts import AttemptSequence, Kind
from sluice.audit.judge.model.observation import Observation

from .observer.calls import intervals_ns, operation_of
from .waits import ended_ns

_WORK = frozenset({"Produce", "Fetch"})
_CALLED = (Kind.ADMIN, Kind.OFFSET_COMMIT)
# Batches are identified by their content, connections by their broker.
IDENTIFIED = (Kind.PRODUCE, Kind.CONNECT)
# A client reports "started" this shortly before its first attempt; a later report belongs to the next client.
_SAME_NS = 1_000_000
# In virtual time a response and its report have the same time, except for rounding.
_ROUNDED_NS = 10_000
# Requests have a rhythm if most follow the last one after this time, give or take.
_IN_RHYTHM, _MOSTLY, _LEAST_INTERVALS = 0.1, 0.75, 3
# If more than this share of waits begin a call, several calls overlap.
_MOST_BEGINS = 1 / 3
SEVERAL_CALLS = "the waits follow no single rule; without a driver, several calls at once cannot be distinguished"
_SHORTEST_MS = 5.0  # shorter waits differ by chance
# Factors from the previous wait that doubling with jitter of ± 20 % does not reach.
_FELL, _ROSE = 0.55, 3.3


def split_calls(found: Iterable[AttemptSequence], run: Observation) -> list[AttemptSequence]:
    failed = [callback.at_ns for callback in run.callbacks if callback.event == "call-failed"]
    made = [callback.at_ns for callback in run.callbacks if callback.event == "started"][1:]  # the first ends no call
    gave_up = [callback.at_ns for callback in run.callbacks if callback.event == "gave-up"]
    ends = {kind: [*gave_up, *(failed if kind in _CALLED else [])] for kind in Kind if kind not in IDENTIFIED}
    parts = [part for sequence in found for part in _parts(sequence, made, ends.get(sequence.kind, []))]
    rhythms = {
        what: median(apart_ns)
        for what, apart_ns in intervals_ns(run.events).items()
        if len(apart_ns) >= _LEAST_INTERVALS
    }
    parts = [piece for part in parts for piece in _in_rhythm(part, rhythms, run)]
    if run.subject.is_command:
        parts = [piece for part in parts for piece in _between_calls(part)]
    return sorted(parts, key=lambda sequence: sequence.attempts[0].at_ns)


def application_pause_ms(waits_ms: Sequence[float], runs: Iterable[Observation]) -> float | None:
    """Return the time between successful requests of a command if most of these waits are as long, else None."""
    found = [
        each
        for run in runs
        if run.subject.is_command
        for apart_ns in intervals_ns(run.events, _WORK).values()
        for each in apart_ns
    ]
    if len(found) < _LEAST_INTERVALS or not waits_ms:
        return None
    pause_ms = median(found) / 1e6
    in_rhythm = sum(abs(waited_ms - pause_ms) <= _IN_RHYTHM * pause_ms for waited_ms in waits_ms)
    return pause_ms if in_rhythm >= _MOSTLY * len(waits_ms) else None


def _parts(sequence: AttemptSequence, made_ns: Sequence[int], failed_ns: Sequence[int]) -> list[AttemptSequence]:
    begins = [
        number
        for number, (before, after) in enumerate(pairwise(sequence.attempts), 1)
        if any(ended_ns(before) - _ROUNDED_NS <= at_ns < after.at_ns for at_ns in failed_ns)
        or any(before.at_ns + _SAME_NS <= at_ns < after.at_ns + _SAME_NS for at_ns in made_ns)
    ]
    return split_at(sequence, begins)


def _in_rhythm(sequence: AttemptSequence, rhythms: Mapping[str, float], run: Observation) -> list[AttemptSequence]:
    interval_ns = rhythms.get(operation_of(sequence))
    if interval_ns is None or not (run.subject.is_command or sequence.kind is Kind.HEARTBEAT):
        return [sequence]
    apart_ns = [after.at_ns - before.at_ns for before, after in pairwise(sequence.attempts)]
    in_rhythm = [abs(each - interval_ns) <= _IN_RHYTHM * interval_ns + _SAME_NS for each in apart_ns]
    if sum(in_rhythm) < _MOSTLY * len(apart_ns):
        return [sequence]
    return split_at(sequence, list(range(1, len(sequence.attempts))))


def _between_calls(sequence: AttemptSequence) -> list[AttemptSequence]:
    if sequence.kind in IDENTIFIED:
        return [sequence]
    begins: list[int] = []
    before_ms = 0.0  # 0: the next wait is the first of a call
    gaps_ms = [max(waited_ms, _SHORTEST_MS) for waited_ms in sequence.gaps_ms()]
    for number, waited_ms in enumerate(gaps_ms, 1):
        if before_ms and not _FELL * before_ms <= waited_ms <= _ROSE * before_ms:
            begins.append(number)
            before_ms = 0.0
        else:
            before_ms = waited_ms
    if len(begins) > _MOST_BEGINS * len(gaps_ms):
        sequence = msgspec.structs.replace(sequence, doubt=SEVERAL_CALLS)
    return split_at(sequence, begins)


def split_at(sequence: AttemptSequence, begins: Sequence[int]) -> list[AttemptSequence]:
    if not begins:
        return [sequence]
    bounds = [0, *begins, len(sequence.attempts)]
    return [
        msgspec.structs.replace(
            sequence,
            key=sequence.key if number == 1 else f"{sequence.key}, part {number}",
            attempts=sequence.attempts[begin:end],
        )
        for number, (begin, end) in enumerate(pairwise(bounds), 1)
    ]
