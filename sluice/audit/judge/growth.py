"""Compares the growth of waits with a backoff rule; judges all waits together, never a single one.

A wait that is too short is the client's choice; one that is too long may be the machine's. So long waits deviate only
if they are several, and a quarter of all waits or half of those after equally many failures.
"""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from sluice.audit.judge.model.verdict import Fit, Verdict

from .case import Case, VerdictDetails
from .completed_calls import IDENTIFIED, SEVERAL_CALLS
from .expected import Backoff, Tolerance
from .fit import CONSTANT, LINEAR
from .waits import Track, Wait, place_of

_LEAST_WAITS = 4
_LEAST_STEPS = 2
_ONE_RULE = 0.35  # a larger residual is that of several calls at once
_IMMEDIATE_MS = 5.0  # from a response to the next request, if neither the client nor its application waits
_SHORT_SHARE, _LONG_SHARE = 0.02, 0.25
_SURELY = 2  # a single short wait may be an attempt assigned to the wrong sequence
_SURELY_LONG = 3
# With several long waits above this share, the machine was too busy for a pass.
_DOUBTFUL_SHARE = 0.1


class _Off(NamedTuple):
    short: list[Wait]
    long: list[Wait]


def judge_growth(case: Case, tracks: Sequence[Track], backoff: Backoff, allowed: Tolerance) -> Verdict:
    waits = [wait for track in tracks for wait in track.waits]
    steps = max((wait.failures for wait in waits), default=-1) + 1
    needed_steps = 1 if backoff.is_constant else min(backoff.steps_to_cap, 2) + 1
    if steps == _LEAST_STEPS and sum(wait.failures == steps - 1 for wait in waits) >= _LEAST_WAITS:
        needed_steps = min(needed_steps, steps)  # the client then gives up, but two steps show growth
    evidence = case.evidence(tracks, backoff, allowed)
    off = _off(waits, backoff, allowed)
    is_off = share_is_off(len(off.short), len(off.long), len(waits)) or _steps_are_off(waits, off)
    measured, expected = numbers(waits, backoff)
    measured |= {"waits": len(waits), "too_short": len(off.short), "too_long": len(off.long)}
    expected |= {"waits": f"at least {_LEAST_WAITS}", "too_short": "0", "too_long": "0"}
    details: VerdictDetails = {**evidence, "measured": measured, "expected": expected}
    if is_off and (doubt := _doubt_of_calls(case, tracks, off, waits, backoff, evidence["fit"])):
        return case.inconclusive(doubt, runs_needed=None, **details)
    if is_off:
        example, why = _how(off, waits, backoff, evidence["fit"])
        return case.deviates(why, where=place_of(tracks, example), **details)
    if len(waits) < _LEAST_WAITS or steps < needed_steps:
        return case.inconclusive(
            f"too few waits: {len(waits)} after up to {steps} failures in a row; expected at least {_LEAST_WAITS} "
            f"after up to {needed_steps}",
            runs_needed=case.more_runs(_LEAST_WAITS, len(waits)),
            **details,
        )
    if off.short and len(off.short) > _SHORT_SHARE * len(waits):
        return case.inconclusive(
            f"1 of {len(waits)} waits is too short, which may be chance", runs_needed=case.runs, **details
        )
    doubtful_share = _LONG_SHARE if len(off.long) < _SURELY_LONG else _DOUBTFUL_SHARE
    if len(off.long) > doubtful_share * len(waits):
        return case.inconclusive(
            f"{len(off.long)} of {len(waits)} waits are too long, possibly because the machine was busy",
            runs_needed=case.runs,
            **details,
        )
    return case.passes(f"{len(waits)} waits match {backoff.in_words()}", **details)


def _doubt_of_calls(
    case: Case, tracks: Sequence[Track], off: _Off, waits: Sequence[Wait], backoff: Backoff, fit: Fit | None
) -> str:
    """Return why a command's wrong waits may not be the client's: only a driver reports when a call ends."""
    if not case.subject.is_command:
        return ""
    if any(track.sequence.kind in IDENTIFIED for track in tracks):
        return "" if off.short else case.doubt_of_pauses(off.long)
    if not share_is_off(len(off.short), 0, len(waits)):
        longest_ms = max(wait.waited_ms for wait in off.long)
        return (
            f"{len(off.long)} waits are too long, such as {longest_ms:.0f} ms; without a driver, pauses of the "
            "application are not known"
        )
    short_ms = median(wait.waited_ms for wait in off.short)
    if _IMMEDIATE_MS < short_ms < backoff.band_ms(0)[0]:
        return (
            f"most waits are too short, such as {short_ms:.0f} ms; without a driver, calls of the application are not "
            "known, which may be as frequent"
        )
    return SEVERAL_CALLS if fit is None or fit.residual > _ONE_RULE else ""


def _off(waits: Sequence[Wait], backoff: Backoff, allowed: Tolerance) -> _Off:
    off = _Off([], [])
    for wait in waits:
        low, high = backoff.band_ms(wait.failures)
        if wait.waited_ms < low - allowed.early_ms and not wait.may_be_shorter:
            off.short.append(wait)
        elif wait.waited_ms > high + allowed.late_ms and not wait.may_be_longer:
            off.long.append(wait)
    return off


def _steps_are_off(waits: Sequence[Wait], off: _Off) -> bool:
    """Return whether half of the waits after some number of failures are too long, even if these are few of all."""
    every = Counter(wait.failures for wait in waits if not wait.may_be_longer)
    long = Counter(wait.failures for wait in off.long)
    return any(count >= _SURELY_LONG and count >= every[failures] / 2 for failures, count in long.items())


def share_is_off(short: int, long: int, waits: int) -> bool:
    """Return whether this many short or long waits rule out chance."""
    is_short = short >= _SURELY and short > _SHORT_SHARE * waits
    return is_short or (long >= _SURELY_LONG and long > _LONG_SHARE * waits)


def _how(off: _Off, waits: Sequence[Wait], backoff: Backoff, fit: Fit | None) -> tuple[Wait, str]:
    which, word = (off.short, "short") if len(off.short) >= len(off.long) else (off.long, "long")
    example = sorted(which, key=lambda wait: wait.waited_ms)[len(which) // 2]
    shown = None if backoff.is_constant else fit
    if shown is not None and shown.model == CONSTANT:
        about_ms = median(wait.waited_ms for wait in waits)
        return example, f"waits about {about_ms:.0f} ms each time; expected {backoff.in_words()}"
    if shown is not None and shown.model == LINEAR:
        return example, (
            f"waits {shown.multiplier:.0f} ms longer each time, starting at {shown.base_ms:.0f} ms; "
            f"expected {backoff.in_words()}"
        )
    low, high = backoff.band_ms(example.failures)
    return example, (
        f"{len(which)} waits are too {word}, such as {example.waited_ms:.0f} ms after failure {example.failures + 1} "
        f"in a row; expected {_range(low, high)}"
    )


def _range(low_ms: float, high_ms: float) -> str:
    return f"{low_ms:.0f} ms" if low_ms == high_ms else f"{low_ms:.0f} to {high_ms:.0f} ms"


def numbers(waits: Sequence[Wait], backoff: Backoff) -> tuple[dict[str, float | str], dict[str, str]]:
    measured: dict[str, float | str] = {}
    expected: dict[str, str] = {}
    for failures in range(min(backoff.steps_to_cap + 1, 8)):
        here = [wait.waited_ms for wait in waits if wait.failures == failures]
        if here:
            low, high = backoff.band_ms(failures)
            measured[f"wait_{failures + 1}_ms"] = round(median(here), 3)
            expected[f"wait_{failures + 1}_ms"] = f"{low:g} to {high:g} ms" if low != high else f"{low:g} ms"
    return measured, expected
