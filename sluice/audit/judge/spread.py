"""Judges whether waits are drawn at random, by their spread relative to the expected values.

Scheduling spreads waits too: with enough expected waits of 200 ms or more, only those count.
"""

from collections.abc import Mapping, Sequence
from statistics import median, quantiles

from sluice.audit.judge.model.verdict import Verdict

from .case import Case, VerdictDetails
from .expected import JITTER, Backoff, Tolerance
from .fit import CONSTANT
from .growth import share_is_off
from .waits import Track, Wait

_LONG_MS = 200.0
_NO_JITTER = 0.05
# The limit for a few waits of a client that redraws, which may be close by chance.
_SURELY_NO_JITTER = 0.02
# Redrawing on every poll moves draws to the upper end: of ± 20 % only 8 % remain visible, and of some samples less.
_SOME_JITTER = 0.08
# For clients that draw once per wait.
_JITTER_FROM, _JITTER_TO, _SURELY_TOO_MUCH = 0.12, 0.28, 0.35
# Without jitter no wait is below this share of the first quartile: lag only lengthens waits.
_EDGE = 0.97
# If the third quartile is this many times the first, waits after the same number of failures do not follow one rule;
# with fewer than eight waits, that may be chance.
_ONE_RULE, _QUARTERS, _LEAST_OF_ONE_STEP = 12.0, 4, 8
_FEW = 3
_LATE_SHARE = 10
_SHORTEST_MS = 0.5


def judge_jitter(
    case: Case, tracks: Sequence[Track], backoff: Backoff, allowed: Tolerance, *, least: int, is_one_draw: bool
) -> Verdict:
    """Judge whether at least `least` waits have the spread of Kafka's jitter."""
    evidence = case.evidence(tracks, backoff, allowed)
    if backoff.is_constant:
        return case.inconclusive("a constant backoff is configured", runs_needed=None, **evidence)
    every = _conclusive([wait for track in tracks for wait in track.waits], backoff, least)
    waits = _of_one_rule(every)
    spread = _spread(waits, backoff)
    low, high = (_JITTER_FROM, _JITTER_TO) if is_one_draw else (_SOME_JITTER, _JITTER_TO)
    if not is_one_draw and len(waits) >= 2 * least and _are_shortened(waits):
        low = _NO_JITTER
    details: VerdictDetails = {
        **evidence,
        "measured": {"waits": len(waits), "jitter": round(spread, 4)},
        "expected": {"waits": f"at least {least}", "jitter": f"{JITTER:g}, observable as {low:g} to {high:g}"},
    }
    if len(every) >= least > len(waits):
        return case.inconclusive(
            f"{len(every) - len(waits)} of {len(every)} waits vary so much after the same number of failures that they "
            "do not follow one rule",
            runs_needed=None,
            **details,
        )
    if len(waits) < least:
        return case.inconclusive(
            f"{len(waits)} waits are too few to measure jitter; expected at least {least}",
            runs_needed=case.more_runs(least, len(waits)),
            **details,
        )
    if doubt := case.doubt_of_pauses(waits):
        return case.inconclusive(doubt, runs_needed=None, **details)
    fit, shortest_ms = evidence["fit"], min(wait.waited_ms for wait in waits)
    if fit is not None and fit.model == CONSTANT and shortest_ms >= _EDGE * _first_quarter_ms(waits):
        return case.deviates(
            f"waits without jitter: {len(waits)} waits of at least {shortest_ms:.0f} ms; expected ± {JITTER:.0%}",
            **details,
        )
    if spread < (_NO_JITTER if is_one_draw or len(waits) >= 2 * least else _SURELY_NO_JITTER):
        return case.deviates(
            f"waits without jitter: {len(waits)} waits spread by ± {spread:.1%}; expected ± {JITTER:.0%}", **details
        )
    if low <= spread <= high:
        return case.passes(f"{len(waits)} waits spread by ± {spread:.0%}; expected ± {JITTER:.0%}", **details)
    if spread > high and not _is_outside(waits, backoff, allowed):
        return case.inconclusive(
            f"{len(waits)} waits spread by ± {spread:.0%}, but most are as long as expected; the machine may have "
            "been busy",
            runs_needed=case.runs,
            **details,
        )
    if is_one_draw and (len(waits) >= 2 * least or spread > _SURELY_TOO_MUCH):
        return case.deviates(f"{len(waits)} waits spread by ± {spread:.0%}; expected ± {JITTER:.0%}", **details)
    return case.inconclusive(
        f"{len(waits)} waits spread by ± {spread:.1%}, neither ± {JITTER:.0%} nor constant",
        runs_needed=case.runs,
        **details,
    )


def _conclusive(waits: Sequence[Wait], backoff: Backoff, least: int) -> list[Wait]:
    below_cap = [
        wait
        for wait in waits
        if wait.failures < backoff.steps_to_cap and not wait.may_be_shorter and not wait.may_be_longer
    ]
    long = [wait for wait in below_cap if backoff.value_ms(wait.failures) >= _LONG_MS]
    return long if len(long) >= least else below_cap


def _is_outside(waits: Sequence[Wait], backoff: Backoff, allowed: Tolerance) -> bool:
    bands = [(wait.waited_ms, *backoff.band_ms(wait.failures)) for wait in waits]
    short = sum(waited_ms < low - allowed.early_ms for waited_ms, low, _ in bands)
    return share_is_off(short, sum(waited_ms > high + allowed.late_ms for waited_ms, _, high in bands), len(waits))


def _first_quarter_ms(waits: Sequence[Wait]) -> float:
    return sorted(wait.waited_ms for wait in waits)[len(waits) // 4]


def _of_one_rule(waits: Sequence[Wait]) -> list[Wait]:
    differ = {failures for failures, here in _by_failures(waits).items() if _differ(here)}
    return [wait for wait in waits if wait.failures not in differ]


def _by_failures(waits: Sequence[Wait]) -> dict[int, list[float]]:
    grouped: dict[int, list[float]] = {}
    for wait in waits:
        grouped.setdefault(wait.failures, []).append(max(wait.waited_ms, _SHORTEST_MS))
    return grouped


def _differ(waits: Sequence[float]) -> bool:
    if len(waits) < _LEAST_OF_ONE_STEP:
        return False
    first, _, third = quantiles(waits, n=_QUARTERS)
    return third > _ONE_RULE * first


def _but_late(waits: Sequence[float]) -> list[float]:
    return sorted(waits)[: len(waits) - len(waits) // _LATE_SHARE]


def _spread(waits: Sequence[Wait], backoff: Backoff) -> float:
    """Return half the spread relative to the value, or to the median after equally many failures if that is less.

    The medians of few draws differ much; a client may also use another base. The longest tenth, which may be late, is
    dropped, and the result extrapolated to uniform draws.
    """
    by_failures = _by_failures(waits)
    values = {failures: backoff.value_ms(failures) for failures in by_failures}
    if all(len(here) < _FEW for here in by_failures.values()):
        return _around(waits, values)
    medians = {failures: median(here) for failures, here in by_failures.items()}
    return min(_around(waits, values), _around(waits, medians))


def _are_shortened(waits: Sequence[Wait]) -> bool:
    """Return whether waits are further below the median than above it, which lag does not cause."""
    ratios = sorted(each / median(here) for here in _by_failures(waits).values() for each in here)
    return 1 - ratios[0] > ratios[-1] - 1


def _around(waits: Sequence[Wait], middles: Mapping[int, float]) -> float:
    ratios = [wait.waited_ms / middles[wait.failures] for wait in waits]
    kept = _but_late(ratios)
    if len(kept) < _FEW:
        return 0.0
    return (kept[-1] - kept[0]) / 2 * (len(ratios) + 1) / (len(kept) - 1)
