"""Judges waits at one point of a backoff: the first waits, those at the maximum, and whether there is a wait at all."""

from collections.abc import Sequence
from operator import attrgetter
from statistics import median

from sluice.audit.judge.model.verdict import Verdict

from .case import Case, VerdictDetails
from .expected import JITTER, Backoff
from .growth import share_is_off
from .waits import Track, gives_up_after, place_of

_LEAST_AT_CAP = 3
_LEAST_FIRST = 3
_waited_ms = attrgetter("waited_ms")
_MAY_BE_CHANCE = "{} waits are too short and {} too long, which may be chance"


def judge_at_cap(case: Case, tracks: Sequence[Track], backoff: Backoff, *, above: float = 1.0) -> Verdict:
    allowed = case.tolerance(backoff.base_ms)
    evidence = case.evidence(tracks, backoff, allowed)
    if backoff.is_constant:
        return case.inconclusive("a constant backoff is configured", runs_needed=None, **evidence)
    bounded = [wait for track in tracks for wait in track.waits if not wait.may_be_longer]
    grown = [wait for wait in bounded if wait.failures >= backoff.steps_to_cap]
    waits, every = [wait.waited_ms for wait in grown], [wait.waited_ms for wait in bounded]
    low, high = (1 - JITTER) * backoff.max_ms, above * backoff.max_ms
    short = [wait for wait in grown if wait.waited_ms < low - allowed.early_ms]
    long = [wait for wait in bounded if wait.waited_ms > high + allowed.late_ms]
    measured: dict[str, float | str] = {"waits": len(waits), "too_short": len(short), "too_long": len(long)}
    if waits:
        measured |= {"shortest_ms": min(waits), "median_ms": median(waits), "longest_ms": max(every)}
    details: VerdictDetails = {
        **evidence,
        "measured": measured,
        "expected": {
            "waits": f"at least {_LEAST_AT_CAP}",
            "shortest_ms": f"at least {low:g} ms",
            "longest_ms": f"at most {high:g} ms",
        },
    }
    if share_is_off(len(short), len(long), len(waits) or len(every)):
        if not short and (doubt := case.doubt_of_pauses(long)):
            return case.inconclusive(doubt, runs_needed=None, **details)
        worst = min(short, key=_waited_ms) if short else max(long, key=_waited_ms)
        return case.deviates(
            f"waits {worst.waited_ms:.0f} ms after failure {worst.failures + 1} in a row, although the maximum is "
            f"reached after {backoff.steps_to_cap + 1}; expected {low:.0f} to {high:.0f} ms",
            where=place_of(tracks, worst),
            **details,
        )
    if not waits and (attempts := gives_up_after(tracks)):
        return case.not_observable(
            f"it gives up after {attempts} attempts; the maximum is reached after {backoff.steps_to_cap + 1} failures"
        )
    if len(waits) < _LEAST_AT_CAP:
        return case.inconclusive(
            f"{len(waits)} waits after {backoff.steps_to_cap + 1} or more failures; expected at least {_LEAST_AT_CAP}",
            runs_needed=case.more_runs(_LEAST_AT_CAP, len(waits)),
            **details,
        )
    if short or len(long) > len(waits) / 4:
        return case.inconclusive(_MAY_BE_CHANCE.format(len(short), len(long)), runs_needed=case.runs, **details)
    if max(waits) > backoff.max_ms + allowed.late_ms:
        return case.passes(
            f"waits up to {max(waits):.0f} ms: jitter is added after the maximum, as in the KIP", **details
        )
    return case.passes(
        f"{len(waits)} waits are {min(waits):.0f} to {max(waits):.0f} ms; the maximum is {backoff.max_ms:g} ms",
        **details,
    )


def judge_first(case: Case, tracks: Sequence[Track], backoff: Backoff) -> Verdict:
    allowed = case.tolerance(backoff.base_ms)
    evidence = case.evidence(tracks, backoff, allowed)
    first = [wait for track in tracks for wait in track.waits if wait.failures == 0]
    low, high = backoff.band_ms(0)
    short = [wait for wait in first if wait.waited_ms < low - allowed.early_ms and not wait.may_be_shorter]
    long = [wait for wait in first if wait.waited_ms > high + allowed.late_ms and not wait.may_be_longer]
    measured: dict[str, float | str] = {"waits": len(first), "too_short": len(short), "too_long": len(long)}
    if first:
        measured["first_wait_ms"] = median(wait.waited_ms for wait in first)
    details: VerdictDetails = {
        **evidence,
        "measured": measured,
        "expected": {"waits": f"at least {_LEAST_FIRST}", "first_wait_ms": f"{low:g} to {high:g} ms"},
    }
    if share_is_off(len(short), len(long), len(first)):
        if not short and (doubt := case.doubt_of_pauses(long)):
            return case.inconclusive(doubt, runs_needed=None, **details)
        which = sorted(short if len(short) >= len(long) else long, key=_waited_ms)
        middle = which[len(which) // 2]
        return case.deviates(
            f"first waits are {middle.waited_ms:.0f} ms (median); expected {low:.0f} to {high:.0f} ms",
            where=place_of(tracks, middle),
            **details,
        )
    if len(first) < _LEAST_FIRST:
        return case.inconclusive(
            f"{len(first)} first waits are too few; expected at least {_LEAST_FIRST}",
            runs_needed=case.more_runs(_LEAST_FIRST, len(first)),
            **details,
        )
    if short or len(long) > len(first) / 4:
        return case.inconclusive(_MAY_BE_CHANCE.format(len(short), len(long)), runs_needed=case.runs, **details)
    return case.passes(
        f"{len(first)} first waits are about {measured['first_wait_ms']:.0f} ms; expected {low:.0f} to {high:.0f} ms",
        **details,
    )


def judge_any(case: Case, tracks: Sequence[Track], backoff: Backoff) -> Verdict:
    """Judge whether there is a wait of at least the base; without data to send, it may be longer."""
    allowed = case.tolerance(backoff.base_ms)
    evidence = case.evidence(tracks, backoff, allowed)
    first = [wait for track in tracks for wait in track.waits if wait.failures == 0]
    waits = [wait.waited_ms for wait in first]
    low, _ = backoff.band_ms(0)
    short = sorted((wait for wait in first if wait.waited_ms < low - allowed.early_ms), key=_waited_ms)
    measured: dict[str, float | str] = {"waits": len(waits), "too_short": len(short)}
    if waits:
        measured["first_wait_ms"] = median(waits)
    details: VerdictDetails = {**evidence, "measured": measured, "expected": {"first_wait_ms": f"at least {low:g} ms"}}
    if share_is_off(len(short), 0, len(waits)):
        middle = short[len(short) // 2]
        why = f"waits {middle.waited_ms:.0f} ms; expected at least {low:.0f} ms"
        return case.deviates(why, where=place_of(tracks, middle), **details)
    if len(waits) < _LEAST_FIRST or short:
        return case.inconclusive(
            f"{len(waits)} waits, {len(short)} of them too short; expected {_LEAST_FIRST} of at least {low:.0f} ms",
            runs_needed=max(1, case.runs),
            **details,
        )
    return case.passes(f"{len(waits)} waits are at least {min(waits):.0f} ms; expected {low:.0f} ms or more", **details)
