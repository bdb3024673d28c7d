"""The backoffs that a client was seen to use, whatever its settings.

For each kind of operation the probe with the most waits counts.
"""

from collections.abc import Sequence
from random import Random  # noqa: TID251  (seeded: the same runs give the same model)
from statistics import median

from sluice.audit.judge.model.attempts import AttemptSequence, Kind, Outcome
from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.verdict import Fit, MeasuredBackoff

from .case import rows_of
from .completed_calls import application_pause_ms, split_calls
from .fit import CONSTANT, fit
from .observer import sequences
from .waits import Track, partition_of, tracks

# The probes whose failures show the backoff of each kind, and those that show its reset and its scope.
_PROBES = {
    Kind.PRODUCE: ("produce-timed-out", "produce-not-enough-replicas", "produce-not-leader"),
    Kind.CONNECT: ("reconnect-closed", "reconnect-reset", "reconnect-silent"),
    Kind.METADATA: ("metadata-unknown-topic", "metadata-leader-not-available"),
    Kind.INIT_PRODUCER_ID: ("init-producer-id-error",),
    Kind.FETCH: ("fetch-error",),
    Kind.LIST_OFFSETS: ("list-offsets-error",),
    Kind.FIND_COORDINATOR: ("coordinator-lookup-error",),
    Kind.JOIN_GROUP: ("join-error",),
    Kind.HEARTBEAT: ("heartbeat-error",),
    Kind.OFFSET_COMMIT: ("commit-error",),
    Kind.ADMIN: ("admin-error",),
}
_RESETS = {Kind.PRODUCE: ("produce-then-success",), Kind.CONNECT: ("reconnect-lost", "reconnect-after-versions")}
_SCOPES = {Kind.PRODUCE: "produce-two-partitions", Kind.CONNECT: "reconnect-two-brokers"}
_NEAR = 1.5
_LEAST_FIRST = 3
_EXPLAINED = 0.4  # a larger residual means several rules


def measured_backoffs(observations: Sequence[Observation]) -> list[MeasuredBackoff]:
    found: list[MeasuredBackoff] = []
    for kind, probes in _PROBES.items():
        by_probe = {probe: _tracks(observations, probe, kind) for probe in probes}
        probe, shown = max(by_probe.items(), key=lambda pair: sum(len(each.waits) for each in pair[1]))
        waits_ms = [wait.waited_ms for each in shown for wait in each.waits]
        if kind is Kind.CONNECT and application_pause_ms(waits_ms, observations) is not None:
            continue
        model = fit(rows_of(shown), Random(len(shown)))  # noqa: S311  (resampling needs no secure randomness)
        if model is not None and model.residual <= _EXPLAINED:
            found.append(
                MeasuredBackoff(
                    kind=kind,
                    probe=probe,
                    fit=model,
                    reset=_is_reset(observations, kind, model),
                    is_shared=_is_shared(observations, kind, model),
                )
            )
    return found


def _tracks(observations: Sequence[Observation], probe: str, kind: Kind) -> list[Track]:
    return [
        each
        for run in observations
        if run.probe == probe and not run.problem
        for each in tracks(_sequences(run, kind), run.repetition)
        if each.waits
    ]


def _sequences(run: Observation, kind: Kind) -> list[AttemptSequence]:
    return [one for one in split_calls(sequences(run.events), run) if one.kind is kind and not one.doubt]


def _is_reset(observations: Sequence[Observation], kind: Kind, model: Fit) -> bool | None:
    first = [
        wait.waited_ms
        for probe in _RESETS.get(kind, ())
        for each in _tracks(observations, probe, kind)
        for wait in each.waits
        if wait.failures == 0 and (kind is Kind.PRODUCE or each.sequence.attempts[0].outcome is Outcome.SUCCEEDED)
    ]
    return _is_near(first, model)


def _is_shared(observations: Sequence[Observation], kind: Kind, model: Fit) -> bool | None:
    """Return whether first waits of one broker or partition have grown with failures of the other."""
    first: list[float] = []
    for each in _tracks(observations, _SCOPES.get(kind, ""), kind):
        others = [
            other
            for other in _tracks(observations, _SCOPES.get(kind, ""), kind)
            if other.repetition == each.repetition and _place(other) != _place(each) and len(other.waits) > 1
        ]
        begins_ns = each.sequence.attempts[0].at_ns
        if any(other.sequence.attempts[1].at_ns < begins_ns < other.sequence.attempts[-1].at_ns for other in others):
            first += [wait.waited_ms for wait in each.waits if wait.failures == 0]
    is_near = _is_near(first, model)
    return None if is_near is None else not is_near


def _place(one: Track) -> str:
    if one.sequence.kind is Kind.CONNECT:
        return str(one.sequence.attempts[0].broker)
    return partition_of(one.sequence)


def _is_near(first: Sequence[float], model: Fit) -> bool | None:
    if model.model == CONSTANT or len(first) < _LEAST_FIRST:
        return None
    return median(first) <= _NEAR * model.base_ms
