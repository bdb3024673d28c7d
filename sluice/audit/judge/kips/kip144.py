"""KIP-144: the backoff before reconnects.

A verdict names the failure that it was observed under, because clients handle connections differently that are accepted
and closed, never answered, or dropped after ApiVersions.

Since 3.7, Kafka caps after adding jitter. Before, and in the KIP's text, waits reach 1.2 times the maximum. Both pass.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from statistics import median

from sluice.audit.judge.case import Case, VerdictDetails, WaitJudge, judge_waits
from sluice.audit.judge.expected import JITTER, Backoff, reconnect_backoff, required
from sluice.audit.judge.growth import judge_growth
from sluice.audit.judge.limits import judge_any, judge_at_cap, judge_first
from sluice.audit.judge.model.attempts import AttemptSequence, Kind, Outcome
from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import Verdict
from sluice.audit.judge.observer.connections import connections, most_half_open
from sluice.audit.judge.parallel_connections import separate_lanes
from sluice.audit.judge.spread import judge_jitter
from sluice.audit.judge.waits import Track

_JITTER_WAITS = 12
# A client keeps separate connections to a bootstrap address, to a broker, and to a coordinator.
_KINDS_OF_CONNECTIONS = {Role.PRODUCER: 2, Role.CONSUMER: 3, Role.ADMIN: 2}
_GROWS = 1.5
_LATER, _LEAST_LATER = 2, 2
_FAILS_LONG = 3
_ALL_STEPS = 1 << 30


def of_reconnects(judge_tracks: WaitJudge) -> Callable[[Case], Verdict]:
    """Make a rule of a judgment of the waits before reconnects."""
    return lambda case: _judge_reconnects(case, judge_tracks)


def _growth(case: Case) -> Verdict:
    if case.probe == "reconnect-refused":
        return case.not_observable("only the client sees a refused connection")

    def judge_tracks(case: Case, tracks: list[Track], backoff: Backoff) -> Verdict:
        above_ms = 0.0 if backoff.is_constant else JITTER * backoff.max_ms  # judged by KIP-144/2
        return judge_growth(case, tracks, backoff, case.tolerance(backoff.base_ms).later(above_ms))

    return _judge_reconnects(case, judge_tracks)


@of_reconnects
def _no_reset_by_accepting(case: Case, tracks: list[Track], backoff: Backoff) -> Verdict:
    evidence = case.evidence(tracks, backoff, case.tolerance(backoff.base_ms))
    if backoff.is_constant:
        return case.inconclusive("a constant backoff is configured", runs_needed=None, **evidence)
    # The wait after a successful connection is a separate case: some clients have none.
    since = 1 if backoff.steps_to_cap > 1 else 0
    first = [wait.waited_ms for track in tracks for wait in track.waits if wait.failures == since]
    later = [wait.waited_ms for track in tracks for wait in track.waits if wait.failures >= since + _LATER]
    if not first or len(later) < _LEAST_LATER:
        return case.inconclusive(f"fewer than {since + 3} failures in a row", runs_needed=1, **evidence)
    details: VerdictDetails = {
        **evidence,
        "measured": {"early_wait_ms": median(first), "later_wait_ms": median(later)},
        "expected": {
            "later_wait_ms": f"at least {_GROWS:g} times the early one, or {backoff.value_ms(since + _LATER) / 2:g} ms"
        },
    }
    # If even a successful connection does not reset the backoff, the early waits may have grown before.
    if median(later) >= min(_GROWS * median(first), backoff.value_ms(since + _LATER) / 2):
        return case.passes(
            f"waits grow from {median(first):.0f} to {median(later):.0f} ms although connections are accepted",
            **details,
        )
    return case.deviates(
        f"waits do not grow while connections are accepted and closed: {median(first):.0f} ms early, "
        f"{median(later):.0f} ms later",
        **details,
    )


@of_reconnects
def _waits_after_loss(case: Case, tracks: list[Track], backoff: Backoff) -> Verdict:
    return judge_any(case, _after_success(tracks), backoff)


@of_reconnects
def _by_host(case: Case, tracks: list[Track], backoff: Backoff) -> Verdict:
    # Only growing waits, here for the failing broker, show that failures are counted.
    grown_ns: dict[tuple[int, int], int] = {}  # by run and failing broker: when its waits had grown
    for track in tracks:
        for attempt, wait in zip(track.sequence.attempts[1:], track.waits, strict=True):
            if wait.failures >= _FAILS_LONG and wait.waited_ms >= _GROWS * backoff.band_ms(0)[1]:
                where = track.repetition, attempt.broker
                grown_ns[where] = min(grown_ns.get(where, attempt.at_ns), attempt.at_ns)
    if not grown_ns:
        return case.inconclusive(
            "the waits for the failing broker do not grow, so its failures are not seen to be counted", runs_needed=1
        )
    others = [
        track
        for track in _after_success(tracks)
        for last in track.sequence.attempts[-1:]
        if (track.repetition, last.broker) not in grown_ns
        and any(run == track.repetition and at_ns < last.at_ns for (run, _), at_ns in grown_ns.items())
    ]
    if not others:
        return case.inconclusive(
            "requires one broker that fails several times while another loses a connection", runs_needed=1
        )
    return judge_first(case, others, backoff)


def _constant_where_set_alone(case: Case) -> Verdict:
    if "reconnect.backoff.ms" in case.subject.lacks:
        return case.not_observable("the client has no reconnect.backoff.ms")
    if "reconnect.backoff.max.ms" in case.subject.settings:
        return case.not_observable("reconnect.backoff.max.ms is also set in this run")
    return _judge_reconnects(case, _constant)


def _constant_above_maximum(case: Case) -> Verdict:
    backoff = reconnect_backoff(case.subject.settings)
    if backoff is None or backoff.base_ms <= backoff.max_ms:
        return case.not_observable("reconnect.backoff.ms is not above reconnect.backoff.max.ms in this run")
    return _judge_reconnects(case, _constant)


def _constant(case: Case, tracks: list[Track], backoff: Backoff) -> Verdict:
    """Accept waits with jitter, as in the KIP's text, and without, as in Kafka."""
    jittered = backoff._replace(constant_jitter=(JITTER, JITTER), jittered_steps=_ALL_STEPS)
    return judge_growth(case, tracks, jittered, case.tolerance(backoff.max_ms))


@of_reconnects
def _jitter(case: Case, tracks: list[Track], backoff: Backoff) -> Verdict:
    allowed = case.tolerance(backoff.base_ms)
    return judge_jitter(case, tracks, backoff, allowed, least=_JITTER_WAITS, is_one_draw=True)


def _one_at_a_time(case: Case) -> Verdict:
    most = max(most_half_open(connections(each.events)) for each in case.observations)
    allowed = _KINDS_OF_CONNECTIONS[case.subject.role]
    details: VerdictDetails = {
        "measured": {"connections_being_made": most},
        "expected": {"connections_being_made": f"at most {allowed}, one of each kind"},
    }
    if most == 0:
        return case.inconclusive("the client did not connect", runs_needed=1, **details)
    if most > allowed:
        return case.deviates(
            f"sets up {most} connections to one broker at the same time; expected at most {allowed}", **details
        )
    return case.passes(
        f"sets up at most {most} connection{'s' * (most != 1)} to one broker at the same time", **details
    )


def _judge_reconnects(case: Case, judge_tracks: WaitJudge) -> Verdict:
    backoff = required(reconnect_backoff(case.subject.settings))
    strategy = "metadata.recovery.strategy"
    if case.subject.settings.get(strategy) == "none" or strategy in case.subject.lacks:
        return judge_waits(case, (Kind.CONNECT,), backoff, judge_tracks)

    def separate(case: Case, found: Sequence[AttemptSequence]) -> list[AttemptSequence]:
        return separate_lanes(found, backoff, case.tolerance(backoff.base_ms).early_ms)

    return judge_waits(case, (Kind.CONNECT,), backoff, judge_tracks, separate)


def _after_success(tracks: list[Track]) -> list[Track]:
    found: list[Track] = []
    for track in tracks:
        attempts = track.sequence.attempts
        for number, ((before, after), wait) in enumerate(zip(pairwise(attempts), track.waits, strict=True)):
            if before.outcome is Outcome.SUCCEEDED:
                sequence = AttemptSequence(
                    kind=Kind.CONNECT, key=track.sequence.key, attempts=[before, after], path=track.sequence.path
                )
                found.append(Track(sequence, track.repetition, [wait], before=number))
    return found


RULES: dict[str, Callable[[Case], Verdict]] = {
    "KIP-144/1": _growth,
    "KIP-144/2": of_reconnects(partial(judge_at_cap, above=1 + JITTER)),
    "KIP-144/3": of_reconnects(lambda case, tracks, backoff: judge_first(case, _after_success(tracks), backoff)),
    "KIP-144/4": _no_reset_by_accepting,
    "KIP-144/5": _waits_after_loss,
    "KIP-144/6": _by_host,
    "KIP-144/7": _constant_where_set_alone,
    "KIP-144/8": _constant_above_maximum,
    "KIP-144/9": _jitter,
    "KIP-144/10": _one_at_a_time,
    "KIP-144/11": _waits_after_loss,
}
