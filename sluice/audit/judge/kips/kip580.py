"""KIP-580: the backoff before retries of batches, metadata, coordinator lookups, heartbeats, commits and admin calls.

Kafka kept joins, offset lookups and producer ids at a static backoff, where the KIP exempts only rebalances. For these,
both pass.
"""

from collections.abc import Callable, Sequence

import msgspec

from sluice.audit.judge import expected
from sluice.audit.judge.case import Case, Regroup, VerdictDetails, WaitJudge, judge_waits
from sluice.audit.judge.growth import judge_growth
from sluice.audit.judge.limits import judge_at_cap, judge_first
from sluice.audit.judge.model.attempts import AttemptSequence, Kind, Outcome
from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import State, Verdict
from sluice.audit.judge.observer.batches import produce_requests
from sluice.audit.judge.spread import judge_jitter
from sluice.audit.judge.waits import Track, gives_up_after, partition_of, place_of
from sluice.journal_events import Request

from .regular_requests import without_other_lookups, without_regular

_JITTER_WAITS = 8
_FIRST_SECOND_MS = 1000.0
_MOST_SHOWN = 4
_HEARTBEAT_LATE_MS, _DISCONNECT_LATE_MS = 100.0, 50.0
_NAMES_LEADER_FROM = 10  # version of Produce
_AT_ONCE, _NOT_AT_ONCE = 0.5, 0.75  # shares of the base
_WORST_FIRST = (State.DEVIATES, State.INCONCLUSIVE, State.PASS)


def _of_batches(judge_tracks: WaitJudge) -> Callable[[Case], Verdict]:
    """Make a rule of a judgment of the waits before retries of batches."""
    return lambda case: _judge(case, (Kind.PRODUCE,), judge_tracks)


def _constant_above_maximum(case: Case) -> Verdict:
    backoff = expected.retry_backoff(case.subject.settings)
    if backoff is None or backoff.base_ms <= backoff.max_ms:
        return case.not_observable("retry.backoff.ms is not above retry.backoff.max.ms in this run")
    return _grows(case, Kind.PRODUCE)


def _constant_at_maximum(case: Case) -> Verdict:
    backoff = expected.retry_backoff(case.subject.settings)
    if backoff is None or backoff.base_ms != backoff.max_ms:
        return case.not_observable("retry.backoff.ms is not equal to retry.backoff.max.ms in this run")
    # The formula of the KIP has jitter before it caps, so the first wait may be shorter.
    return _grows(case, Kind.PRODUCE, backoff=backoff._replace(constant_jitter=(expected.JITTER, 0.0)))


@_of_batches
def _by_batch(case: Case, tracks: list[Track], backoff: expected.Backoff) -> Verdict:
    partitions: dict[str, list[Track]] = {}
    for track in tracks:
        partitions.setdefault(partition_of(track.sequence), []).append(track)
    if len(partitions) < 2:
        return case.inconclusive("requires failed batches of two partitions", runs_needed=1)
    # Judged separately, so that the correct waits of one partition do not outweigh wrong ones of the other.
    allowed = case.tolerance(backoff.base_ms)
    verdicts = [judge_growth(case, of_one, backoff, allowed) for of_one in partitions.values()]
    return min(verdicts, key=lambda verdict: _WORST_FIRST.index(verdict.state))


@_of_batches
def _reset_by_success(case: Case, tracks: list[Track], backoff: expected.Backoff) -> Verdict:
    later = [track for track in tracks if _comes_after_success(case, track)]
    if not later:
        return case.inconclusive("no batch failed after another had succeeded", runs_needed=1)
    return judge_first(case, later, backoff)


def _comes_after_success(case: Case, track: Track) -> bool:
    first_ns = track.sequence.attempts[0].at_ns
    return any(
        other.kind is Kind.PRODUCE
        and len(other.attempts) > 1
        and other.attempts[-1].outcome is Outcome.SUCCEEDED
        and other.attempts[-1].at_ns < first_ns
        for run, found in zip(case.observations, case.found, strict=True)
        if run.repetition == track.repetition
        for other in found
    )


@_of_batches
def _no_wait_for_new_leader(case: Case, tracks: list[Track], backoff: expected.Backoff) -> Verdict:
    allowed = case.tolerance(backoff.base_ms)
    moved = [wait.waited_ms for track in tracks for wait in track.waits if wait.may_be_shorter and wait.failures == 0]
    evidence = case.evidence(tracks, None, allowed)
    if not moved:
        return case.inconclusive("no batch was resent to another broker after its first failure", runs_needed=1)
    version = max(each.version for run in case.observations for each in produce_requests(run.events))
    if version < _NAMES_LEADER_FROM:
        return case.not_observable(
            f"the client uses Produce {version}, whose responses do not name the new leader; KIP-951 needs "
            f"{_NAMES_LEADER_FROM}"
        )
    details: VerdictDetails = {
        **evidence,
        "measured": {"waits": len(moved), "shortest_ms": min(moved), "longest_ms": max(moved)},
        "expected": {"longest_ms": f"below {_AT_ONCE * backoff.base_ms:g} ms"},
    }
    at_once = sum(waited_ms <= _AT_ONCE * backoff.base_ms for waited_ms in moved)
    if at_once == len(moved):
        return case.passes(f"resends to the new leader within {max(moved):.0f} ms", **details)
    if all(waited_ms >= _NOT_AT_ONCE * backoff.base_ms for waited_ms in moved):
        shortest = next(wait for track in tracks for wait in track.waits if wait.waited_ms == min(moved))
        return case.deviates(
            f"waits at least {min(moved):.0f} ms although there is a new leader; expected below "
            f"{_AT_ONCE * backoff.base_ms:g} ms",
            where=place_of(tracks, shortest),
            **details,
        )
    return case.inconclusive(
        f"resends {at_once} of {len(moved)} batches to the new leader without a wait", runs_needed=case.runs, **details
    )


def _metadata_disconnect(case: Case) -> Verdict:
    def judge_tracks(case: Case, tracks: list[Track], backoff: expected.Backoff) -> Verdict:
        reconnect = expected.required(expected.reconnect_backoff(case.subject.settings))
        late_ms = (1 + expected.JITTER) * reconnect.max_ms + _DISCONNECT_LATE_MS
        return judge_growth(case, tracks, backoff, case.tolerance(backoff.base_ms).later(late_ms))

    return _judge(case, (Kind.METADATA,), judge_tracks)


def _coordinator_growth(case: Case) -> Verdict:
    if case.probe == "commit-error":
        return _grows(case, Kind.OFFSET_COMMIT)
    backoff = expected.required(expected.retry_backoff(case.subject.settings))
    # Between two lookups the client may refresh metadata, which has a separate backoff.
    delayed = backoff._replace(other_delay_ms=(1 + expected.JITTER) * backoff.max_ms)

    def regroup(case: Case, found: Sequence[AttemptSequence]) -> list[AttemptSequence]:
        every = [one for of_run in case.found for one in of_run if one.kind is Kind.FIND_COORDINATOR]
        return without_other_lookups(found, every, backoff, case.tolerance(backoff.base_ms))

    return _grows(case, Kind.FIND_COORDINATOR, backoff=delayed, regroup=regroup)


def _heartbeat_growth(case: Case) -> Verdict:
    settings = case.subject.settings
    backoff, interval_ms = (
        expected.required(expected.retry_backoff(settings)),
        expected.number(settings, "heartbeat.interval.ms"),
    )

    def regroup(case: Case, found: Sequence[AttemptSequence]) -> list[AttemptSequence]:
        late_ms = case.tolerance(backoff.base_ms).late_ms
        return [part for one in found for part in without_regular(one, backoff, interval_ms or 0.0, late_ms)]

    return _grows(case, Kind.HEARTBEAT, late_ms=_HEARTBEAT_LATE_MS, regroup=regroup)


def _init_producer_id(case: Case) -> Verdict:
    events = (event for run in case.observations for event in run.events)
    if not any(isinstance(event, Request) and event.api == "InitProducerId" for event in events):
        return case.not_observable("it sends no InitProducerId: its producer is not idempotent")
    return _static_or_growing(case, Kind.INIT_PRODUCER_ID)


@_of_batches
def _jitter(case: Case, tracks: list[Track], backoff: expected.Backoff) -> Verdict:
    allowed = case.tolerance(backoff.base_ms)
    return judge_jitter(case, tracks, backoff, allowed, least=_JITTER_WAITS, is_one_draw=False)


@_of_batches
def _first_second(case: Case, tracks: list[Track], backoff: expected.Backoff) -> Verdict:
    allowed = case.tolerance(backoff.base_ms)
    most = _most_sends(backoff, allowed.early_ms)
    most_sent = max(tracks, key=lambda track: _sends(track.sequence))
    sends = _sends(most_sent.sequence)
    for_long = sum(_failed_for_a_second(track.sequence) for track in tracks)
    details: VerdictDetails = {
        **case.evidence(tracks, backoff, allowed),
        "measured": {"batches_that_failed_for_a_second": for_long, "sends": sends},
        "expected": {"batches_that_failed_for_a_second": "at least 1", "sends": f"at most {most}"},
    }
    if sends > most:
        return case.deviates(
            f"sends a batch {sends} times in its first second; expected at most {most}: {_why_most(backoff, most)}",
            where=f"run {most_sent.repetition + 1}, attempts 1 to {sends} of {most_sent.sequence.key}",
            **details,
        )
    if not for_long and (attempts := gives_up_after(tracks)):
        return case.not_observable(f"it gives up after {attempts} attempts, in less than a second")
    if not for_long:
        return case.inconclusive("no batch failed for a second", runs_needed=1, **details)
    return case.passes(
        f"sends a batch at most {sends} times in its first second; {most} are allowed: {_why_most(backoff, most)}",
        **details,
    )


def _most_sends(backoff: expected.Backoff, early_ms: float) -> int:
    at_ms, sends = 0.0, 0
    while at_ms <= _FIRST_SECOND_MS and sends < _FIRST_SECOND_MS:
        low, _ = backoff.band_ms(sends)
        at_ms += max(low - early_ms, 0)
        sends += 1
    return sends


def _why_most(backoff: expected.Backoff, most: int) -> str:
    waits_ms = [backoff.band_ms(failures)[0] for failures in range(most)]
    shown = ", ".join(f"{wait_ms:g}" for wait_ms in waits_ms[:_MOST_SHOWN])
    more = " ..." if most > _MOST_SHOWN else ""
    return f"after the shortest waits, {shown}{more} ms, attempt {most + 1} is sent at {sum(waits_ms):g} ms"


def _sends(sequence: AttemptSequence) -> int:
    first_ns = sequence.attempts[0].at_ns
    return sum((attempt.at_ns - first_ns) / 1e6 <= _FIRST_SECOND_MS for attempt in sequence.attempts)


def _failed_for_a_second(sequence: AttemptSequence) -> bool:
    return (sequence.attempts[-1].at_ns - sequence.attempts[0].at_ns) / 1e6 > _FIRST_SECOND_MS


def _older_clients(case: Case) -> Verdict:
    if "KIP-580" not in case.subject.before:
        return case.not_observable("applies only to clients older than KIP-580")
    return _static(case, Kind.PRODUCE)


# -- how waits are judged ----------------------------------------------------------------------------------------------


def _grows(
    case: Case,
    *kinds: Kind,
    late_ms: float = 0.0,
    backoff: expected.Backoff | None = None,
    regroup: Regroup | None = None,
) -> Verdict:
    def judge_tracks(case: Case, tracks: list[Track], backoff: expected.Backoff) -> Verdict:
        return judge_growth(case, tracks, backoff, _tolerance(case, backoff).later(late_ms))

    return _judge(case, kinds, judge_tracks, backoff, regroup)


def _tolerance(case: Case, backoff: expected.Backoff) -> expected.Tolerance:
    """Add the poll interval of an idle consumer, which is retry.backoff.ms."""
    polls_ms = backoff.base_ms if case.subject.role is Role.CONSUMER else 0.0
    return case.tolerance(backoff.base_ms).later(polls_ms)


def _static(case: Case, *kinds: Kind) -> Verdict:
    backoff = expected.required(expected.static_backoff(case.subject.settings))
    return _judge(
        case,
        kinds,
        lambda case, tracks, backoff: judge_growth(case, tracks, backoff, _tolerance(case, backoff)),
        backoff,
    )


def _static_or_growing(case: Case, *kinds: Kind) -> Verdict:
    static = _static(case, *kinds)
    if static.state is not State.DEVIATES:
        return static
    growing = _grows(case, *kinds)
    if growing.state is not State.DEVIATES:
        return growing
    backoff = expected.required(expected.retry_backoff(case.subject.settings))
    return msgspec.structs.replace(static, why=f"{static.why}, or {backoff.in_words()}")


def _judge(
    case: Case,
    kinds: tuple[Kind, ...],
    judge_tracks: WaitJudge,
    backoff: expected.Backoff | None = None,
    regroup: Regroup | None = None,
) -> Verdict:
    backoff = backoff or expected.required(expected.retry_backoff(case.subject.settings))
    return judge_waits(case, kinds, backoff, judge_tracks, regroup)


RULES: dict[str, Callable[[Case], Verdict]] = {
    "KIP-580/1": lambda case: _grows(case, Kind.PRODUCE),
    "KIP-580/2": _of_batches(judge_at_cap),
    "KIP-580/3": _constant_above_maximum,
    "KIP-580/4": _constant_at_maximum,
    "KIP-580/5": _by_batch,
    "KIP-580/6": _reset_by_success,
    "KIP-580/7": _no_wait_for_new_leader,
    "KIP-580/8": lambda case: _grows(case, Kind.METADATA),
    "KIP-580/9": _metadata_disconnect,
    "KIP-580/10": _coordinator_growth,
    "KIP-580/11": _heartbeat_growth,
    "KIP-580/12": lambda case: _static_or_growing(case, Kind.JOIN_GROUP, Kind.SYNC_GROUP),
    "KIP-580/13": lambda case: _static_or_growing(case, Kind.LIST_OFFSETS),
    "KIP-580/14": _init_producer_id,
    "KIP-580/15": lambda case: _grows(case, Kind.ADMIN),
    "KIP-580/16": _jitter,
    "KIP-580/17": _first_second,
    "KIP-580/18": _older_clients,
}
