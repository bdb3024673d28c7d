"""Are waits drawn at random? One wait never says; the spread of many does, as a share of what they should be.

What scheduling adds spreads waits as well, and matters less the longer they are: where there are enough that are
expected to be 200 ms or more, only those count.
"""

from collections.abc import Sequence
from math import ceil
from statistics import median, quantiles

from sluice.audit.judge.model.verdict import Verdict

from .case import Case, VerdictDetails
from .expected import JITTER, Backoff, Tolerance
from .fit import CONSTANT
from .waits import Track, Wait

_LONG_MS = 200.0
_NO_JITTER = 0.05
# Of few draws anew: by chance these may all be that near to each other.
_SURELY_NO_JITTER = 0.02
# Draws anew at every look are all near the upper end: of 20 % to both sides 8 % are seen then.
_SOME_JITTER = 0.08
# Of one draw for each wait.
_JITTER_FROM, _JITTER_TO, _SURELY_TOO_MUCH = 0.12, 0.28, 0.35
# Of what a quarter of the waits are below. Being late makes waits longer: only what is drawn may be shorter as well.
_EDGE = 0.97
# Waits after as many failures of which the third quarter is so many times the first are not of one rule, with jitter or
# without: rows of others are among them, or waits for other things. Of fewer than eight it may be chance: a sixteenth
# of all fours that are drawn from 0 to twice as much differs so much.
_ONE_RULE, _QUARTERS, _LEAST_OF_ONE_STEP = 12.0, 4, 8
_FEW = 3
_LATE_SHARE = 10
_SHORTEST_MS = 0.5


def judge_jitter(
    case: Case, tracks: Sequence[Track], backoff: Backoff, allowed: Tolerance, *, least: int, is_one_draw: bool
) -> Verdict:
    """Whether waits spread as Kafka's jitter has it. `least`: so many are needed."""
    evidence = case.evidence(tracks, backoff, allowed)
    if backoff.is_constant:
        return case.inconclusive("it is configured to wait the same each time", runs_needed=None, **evidence)
    every = _conclusive([wait for track in tracks for wait in track.waits], backoff, least)
    waits = _of_one_rule(every)
    spread = _spread(waits, backoff)
    low, high = (_JITTER_FROM, _JITTER_TO) if is_one_draw else (_SOME_JITTER, _JITTER_TO)
    details: VerdictDetails = {
        **evidence,
        "measured": {"waits": len(waits), "jitter": round(spread, 4)},
        "expected": {"waits": f"{least} at least", "jitter": f"{JITTER:g}, seen as {low:g} to {high:g}"},
    }
    if len(every) >= least > len(waits):
        return case.inconclusive(
            f"{len(every) - len(waits)} of {len(every)} waits differ so much after as many failures that they "
            "are not of one rule, with jitter or without",
            runs_needed=None,
            **details,
        )
    if len(waits) < least:
        needed = max(1, ceil((least - len(waits)) * case.runs / max(1, len(waits))))
        return case.inconclusive(f"{len(waits)} waits are too few to see jitter", runs_needed=needed, **details)
    fit, shortest_ms = evidence["fit"], min(wait.waited_ms for wait in waits)
    if fit is not None and fit.model == CONSTANT and shortest_ms >= _EDGE * _first_quarter_ms(waits):
        return case.deviates(
            f"waits without jitter: {len(waits)} waits are {shortest_ms:.0f} ms or longer, and none is less", **details
        )
    if spread < (_NO_JITTER if is_one_draw or len(waits) >= 2 * least else _SURELY_NO_JITTER):
        return case.deviates(
            f"waits without jitter: {len(waits)} of them spread by {spread:.1%} to both sides", **details
        )
    if low <= spread <= high:
        return case.passes(f"{len(waits)} waits spread by {spread:.0%} to both sides", **details)
    if is_one_draw and (len(waits) >= 2 * least or spread > _SURELY_TOO_MUCH):
        return case.deviates(f"{len(waits)} waits spread by {spread:.0%} to both sides, not by {JITTER:.0%}", **details)
    return case.inconclusive(
        f"{len(waits)} waits spread by {spread:.1%} to both sides, which says neither", runs_needed=case.runs, **details
    )


def _conclusive(waits: Sequence[Wait], backoff: Backoff, least: int) -> list[Wait]:
    below_cap = [
        wait
        for wait in waits
        if wait.failures < backoff.steps_to_cap and not wait.may_be_shorter and not wait.may_be_longer
    ]
    long = [wait for wait in below_cap if backoff.value_ms(wait.failures) >= _LONG_MS]
    return long if len(long) >= least else below_cap


def _first_quarter_ms(waits: Sequence[Wait]) -> float:
    return sorted(wait.waited_ms for wait in waits)[len(waits) // 4]


def _of_one_rule(waits: Sequence[Wait]) -> list[Wait]:
    by_failures: dict[int, list[float]] = {}
    for wait in waits:
        by_failures.setdefault(wait.failures, []).append(max(wait.waited_ms, _SHORTEST_MS))
    differ = {failures for failures, here in by_failures.items() if _differ(here)}
    return [wait for wait in waits if wait.failures not in differ]


def _differ(waits: Sequence[float]) -> bool:
    if len(waits) < _LEAST_OF_ONE_STEP:
        return False
    first, _, third = quantiles(waits, n=_QUARTERS)
    return third > _ONE_RULE * first


def _but_late(waits: Sequence[float]) -> list[float]:
    """In their order, without the longest tenth."""
    return sorted(waits)[: len(waits) - len(waits) // _LATE_SHARE]


def _spread(waits: Sequence[Wait], backoff: Backoff) -> float:
    """Half of what they spread by, as a share of what is waited in the middle after as many failures.

    The longest tenth may be late, and is left out. What is so missed of the spread is added, as of uniform draws.
    """
    by_failures: dict[int, list[float]] = {}
    for wait in waits:
        by_failures.setdefault(wait.failures, []).append(wait.waited_ms)
    middles = {failures: max(median(here), _SHORTEST_MS) for failures, here in by_failures.items()}
    if all(len(here) < _FEW for here in by_failures.values()):
        middles = {failures: backoff.value_ms(failures) for failures in by_failures}
    ratios = [wait.waited_ms / middles[wait.failures] for wait in waits]
    kept = _but_late(ratios)
    if len(kept) < _FEW:
        return 0.0
    return (kept[-1] - kept[0]) / 2 * (len(ratios) + 1) / (len(kept) - 1)
