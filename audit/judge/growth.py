"""Do waits grow as a rule of backoff demands? Judged by all of them together, never by one.

A wait that is too short is one that the client chose. One that is too long may be the machine's: it takes several, and
a quarter of all, or half of those after as many failures. What is in between is not decided: more runs are.
"""

from collections import Counter
from collections.abc import Sequence
from math import ceil
from statistics import median
from typing import NamedTuple

from sluice.audit.judge.model.verdict import Fit, Verdict

from .case import Case, VerdictDetails
from .expected import Backoff, Tolerance
from .fit import CONSTANT, LINEAR
from .waits import Track, Wait

_LEAST_WAITS = 4
_LEAST_STEPS = 2
_SHORT_SHARE, _LONG_SHARE = 0.02, 0.25
_SURELY = 2  # one that is too short, or two that are too long, may have been taken for what they are not
_SURELY_LONG = 3
# Where several waits are too long, and these are more than so many of all, a quiet machine would not have been enough.
_DOUBTFUL_SHARE = 0.1
# A model whose waits spread by more than this is told by nobody: they are not alike.
_ALIKE = 0.5


class _Off(NamedTuple):
    short: list[Wait]
    long: list[Wait]


def judge_growth(case: Case, tracks: Sequence[Track], backoff: Backoff, allowed: Tolerance) -> Verdict:
    """Whether all these waits are within the rule's band."""
    waits = [wait for track in tracks for wait in track.waits]
    steps = max((wait.failures for wait in waits), default=-1) + 1
    needed_steps = 1 if backoff.is_constant else min(backoff.steps_to_cap, 2) + 1
    if steps == _LEAST_STEPS and sum(wait.failures == steps - 1 for wait in waits) >= _LEAST_WAITS:
        needed_steps = min(needed_steps, steps)  # it never tries more often, and waits differ already
    evidence = case.evidence(tracks, backoff, allowed)
    off = _off(waits, backoff, allowed)
    is_off = share_is_off(len(off.short), len(off.long), len(waits)) or _steps_are_off(waits, off)
    measured, expected = numbers(waits, backoff)
    measured |= {"waits": len(waits), "too_short": len(off.short), "too_long": len(off.long)}
    expected |= {"waits": f"{_LEAST_WAITS} at least", "too_short": "0", "too_long": "0"}
    details: VerdictDetails = {**evidence, "measured": measured, "expected": expected}
    if is_off:
        fit = evidence["fit"]
        return case.deviates(_how(waits, off, backoff, fit if isinstance(fit, Fit) else None), **details)
    if len(waits) < _LEAST_WAITS or steps < needed_steps:
        missing = max(1, ceil((_LEAST_WAITS - len(waits)) * case.runs / max(1, len(waits))))
        return case.inconclusive(
            f"{len(waits)} waits after up to {steps} failures in a row are too few", runs_needed=missing, **details
        )
    if off.short and len(off.short) > _SHORT_SHARE * len(waits):
        return case.inconclusive(
            f"one of {len(waits)} waits is too short, which may be chance", runs_needed=case.runs, **details
        )
    doubtful_share = _LONG_SHARE if len(off.long) < _SURELY_LONG else _DOUBTFUL_SHARE
    if len(off.long) > doubtful_share * len(waits):
        return case.inconclusive(
            f"{len(off.long)} of {len(waits)} waits are too long, which may be the machine's",
            runs_needed=case.runs,
            **details,
        )
    return case.passes(f"{len(waits)} waits are {backoff.in_words()}", **details)


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
    """Whether half of the waits after the same number of failures are too long: of all of them they may be few, where
    most are at the maximum.
    """
    every = Counter(wait.failures for wait in waits if not wait.may_be_longer)
    long = Counter(wait.failures for wait in off.long)
    return any(count >= _SURELY_LONG and count >= every[failures] / 2 for failures, count in long.items())


def share_is_off(short: int, long: int, waits: int) -> bool:
    """Whether so many waits that are too short, or too long, of all of them, are not chance."""
    is_short = short >= _SURELY and short > _SHORT_SHARE * waits
    return is_short or (long >= _SURELY_LONG and long > _LONG_SHARE * waits)


def _how(waits: Sequence[Wait], off: _Off, backoff: Backoff, fit: Fit | None) -> str:
    shown = fit if fit is not None and fit.jitter < _ALIKE and not backoff.is_constant else None
    if shown is not None and shown.model == CONSTANT:
        about_ms = median(wait.waited_ms for wait in waits)
        return f"waits about {about_ms:.0f} ms each time, where {backoff.in_words()} are to be waited"
    if shown is not None and shown.model == LINEAR:
        return (
            f"waits {shown.multiplier:.0f} ms more each time, from {shown.base_ms:.0f} ms on, "
            f"where {backoff.in_words()} are to be waited"
        )
    which, word = (off.short, "short") if len(off.short) >= len(off.long) else (off.long, "long")
    example = sorted(which, key=lambda wait: wait.waited_ms)[len(which) // 2]
    low, high = backoff.band_ms(example.failures)
    return (
        f"{len(which)} waits are too {word}, such as {example.waited_ms:.0f} ms after failure {example.failures + 1} "
        f"in a row, where {_range(low, high)} are to be waited"
    )


def _range(low_ms: float, high_ms: float) -> str:
    return f"{low_ms:.0f} ms" if low_ms == high_ms else f"{low_ms:.0f} to {high_ms:.0f} ms"


def numbers(waits: Sequence[Wait], backoff: Backoff) -> tuple[dict[str, float | str], dict[str, str]]:
    """The median of the waits after each number of failures, and what it should be."""
    measured: dict[str, float | str] = {}
    expected: dict[str, str] = {}
    for failures in range(min(backoff.steps_to_cap + 1, 8)):
        here = [wait.waited_ms for wait in waits if wait.failures == failures]
        if here:
            low, high = backoff.band_ms(failures)
            measured[f"wait_{failures + 1}_ms"] = round(median(here), 3)
            expected[f"wait_{failures + 1}_ms"] = f"{low:g} to {high:g} ms" if low != high else f"{low:g} ms"
    return measured, expected
