"""The plots of one verdict: attempts over time, and the wait before each, compared with the allowed band.

Dots are zero-length strokes with round caps, so that hundreds form one short path.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, zip_longest
from math import ceil, floor, log10
from typing import NamedTuple

from sluice.audit.judge.model.attempts import Outcome
from sluice.audit.judge.model.verdict import Fit, Series

from .words import milliseconds

WIDE = 30.0
_MOST_TICKS = 6


class Axis(NamedTuple):
    """Values from `low` to `high` at coordinates from `start` to `end`, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool

    def at(self, value: float) -> float:
        kept = min(max(value, self.low), self.high)
        if self.is_log:
            share = log10(kept / self.low) / log10(self.high / self.low)
        else:
            share = (kept - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        return _log_ticks(self.low, self.high) if self.is_log else _linear_ticks(self.low, self.high)


def axis_of(values: list[float], start: float, end: float) -> Axis:
    positive = [value for value in values if value > 0]
    high = max(positive, default=1.0)
    low = min(positive, default=1.0)
    if high / low > WIDE:
        return Axis(low / 1.25, high * 1.25, start, end, is_log=True)
    return Axis(0.0, high * 1.08, start, end, is_log=False)


def _linear_ticks(low: float, high: float) -> list[float]:
    step = _round_step((high - low) / _MOST_TICKS)
    first = ceil(low / step)
    return [number * step for number in range(first, floor(high / step) + 1)]


def _round_step(least: float) -> float:
    power = 10.0 ** floor(log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least)


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [digit * 10.0**power for power in powers for digit in digits if low <= digit * 10.0**power <= high]
        if len(found) <= _MOST_TICKS:
            return found
    return found[:: ceil(len(found) / _MOST_TICKS)]


MOST_SERIES = 12  # per plot; more are not readable
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 380, 50, 8, 8, 34
_HEIGHT = 230
_ROW = 14
_BEYOND_ANY_WAIT_MS = 1e9
# Makes the bands of consecutive retries touch.
_HALF_STEP = 0.5
_FEW_RETRIES = 10


class Shape(NamedTuple):
    kind: str
    path: str


class Label(NamedTuple):
    text: str
    x: float
    y: float
    kind: str


class Plot(NamedTuple):
    """The parts of a plot, from back to front."""

    title: str
    height: float
    parts: Sequence[Shape | Label]
    width: float = _WIDTH


def attempts_plot(series: Sequence[Series]) -> Plot:
    """Draw one row per sequence, with the allowed times of the next attempt."""
    shown = series[:MOST_SERIES]
    bottom = _TOP + _ROW * len(shown)
    last = max((each.at_ms[-1] for each in shown if each.at_ms), default=0.0)
    along = Axis(0.0, last * 1.03 or 1.0, _LEFT, _WIDTH - _RIGHT, is_log=False)
    parts = _along(along, bottom, "since the first attempt", milliseconds)
    for number, each in enumerate(shown):
        parts += _row(each, number, _TOP + _ROW * (number + 0.5), along)
    return Plot("Attempts over time", bottom + _BOTTOM, parts)


def waits_plot(series: Sequence[Series], fit: Fit | None) -> Plot:
    """Draw the wait before each retry, with allowed band and fitted model."""
    shown = [each for each in series if each.waited_ms][:MOST_SERIES]
    retries = max((len(each.waited_ms) for each in shown), default=1)
    lows, highs = _band(shown)
    fitted = [] if fit is None else [_fitted(fit, retry) for retry in range(1, _until_reset(lows, retries) + 1)]
    waits = [wait for each in shown for wait in each.waited_ms]
    down = axis_of([*waits, *lows, *highs, *fitted], _HEIGHT - _BOTTOM, _TOP)
    along = Axis(1 - _HALF_STEP, retries + _HALF_STEP, _LEFT, _WIDTH - _RIGHT, is_log=False)
    parts = [*_along(along, _HEIGHT - _BOTTOM, "retry", _whole), *_down(down)]
    if lows:
        parts.append(Shape("band", _band_path(lows, highs, along, down)))
    if fitted:
        parts.append(Shape("fit", _line((along.at(at), down.at(wait)) for at, wait in enumerate(fitted, 1))))
    dots = [
        (along.at(at + _aside(number, len(shown), retries)), down.at(wait))
        for number, each in enumerate(shown)
        for at, wait in enumerate(each.waited_ms, 1)
    ]
    parts.append(Shape("dots wait", _dots(dots)))
    return Plot("Waits before each retry", _HEIGHT, parts)


def _until_reset(lows: Sequence[float], retries: int) -> int:
    return next((at for at, (before, low) in enumerate(pairwise(lows), 1) if low < before), retries)


def _aside(number: int, of: int, retries: int) -> float:
    return 0.0 if of == 1 or retries > _FEW_RETRIES else _HALF_STEP * (number / (of - 1) - 0.5)


def _row(series: Series, number: int, y: float, along: Axis) -> list[Shape | Label]:
    allowed = "".join(_window(series, at, y, along) for at in range(len(series.low_ms)))
    succeeded, failed, open_ended = (list[tuple[float, float]]() for _ in range(3))
    for at_ms, outcome in zip_longest(series.at_ms, series.outcomes[: len(series.at_ms)], fillvalue=""):
        places = {Outcome.SUCCEEDED: succeeded, Outcome.ABANDONED: open_ended, Outcome.UNANSWERED: open_ended}
        places.get(Outcome(outcome) if outcome else Outcome.ERROR, failed).append((along.at(float(at_ms)), y))
    parts: list[Shape | Label] = [Label(str(number + 1), _LEFT - 10, y + 3.5, "end")]
    parts += [Shape("lane", f"M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}")]
    parts += [Shape("band", allowed)] if allowed else []
    for kind, places_ in (("failed", failed), ("open", open_ended), ("succeeded", succeeded)):
        if places_:
            parts.append(Shape(f"dots {kind}", _dots(places_)))
    return parts


def _window(series: Series, at: int, y: float, along: Axis) -> str:
    if at + 1 >= len(series.at_ms) or at >= len(series.waited_ms):
        return ""
    ended = series.at_ms[at + 1] - series.waited_ms[at]
    left, right = along.at(ended + series.low_ms[at]), along.at(ended + series.high_ms[at])
    half = _ROW / 2 - 2
    return f"M{left:.1f} {y - half:.1f}H{max(right, left + 1):.1f}v{2 * half:g}H{left:.1f}z"


def _band(shown: Sequence[Series]) -> tuple[list[float], list[float]]:
    lows = [min(_there(each)) for each in zip_longest(*(one.low_ms for one in shown))]
    highs = [max(_there(each)) for each in zip_longest(*(one.high_ms for one in shown))]
    largest = max((wait for each in shown for wait in each.waited_ms), default=1.0)
    # Cut an unbounded band off above all values.
    return lows, [
        min(high, 4 * max(largest, low)) if high > _BEYOND_ANY_WAIT_MS else high
        for low, high in zip(lows, highs, strict=True)
    ]


def _there(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _band_path(lows: Sequence[float], highs: Sequence[float], along: Axis, down: Axis) -> str:
    steps = [
        (along.at(at + side), down.at(high)) for at, high in enumerate(highs, 1) for side in (-_HALF_STEP, _HALF_STEP)
    ]
    steps += [
        (along.at(at + side), down.at(low))
        for at, low in reversed(list(enumerate(lows, 1)))
        for side in (_HALF_STEP, -_HALF_STEP)
    ]
    return _line(steps) + "z"


def _fitted(fit: Fit, retry: int) -> float:
    if fit.model == "exponential":
        # Limited, because the power overflows for sequences of hours.
        wait = fit.base_ms * fit.multiplier ** min(retry - 1, 64)
    elif fit.model == "linear":
        wait = fit.base_ms + fit.multiplier * (retry - 1)
    else:
        wait = fit.base_ms
    return wait if fit.cap_ms is None else min(wait, fit.cap_ms)


def _along(axis: Axis, bottom: float, words: str, in_words: Callable[[float], str]) -> list[Shape | Label]:
    ticks = axis.ticks()
    if in_words is _whole:
        ticks = sorted({float(ceil(tick)) for tick in ticks if axis.low <= ceil(tick) <= axis.high})
    marks: list[Shape | Label] = [Shape("grid", "".join(f"M{axis.at(tick):.1f} {_TOP}V{bottom:.1f}" for tick in ticks))]
    marks += [Label(in_words(tick), axis.at(tick), bottom + 13, "middle") for tick in ticks]
    middle = (axis.start + axis.end) / 2
    return [*marks, Label(words, middle, bottom + 28, "middle axis")]


def _down(axis: Axis) -> list[Shape | Label]:
    ticks = axis.ticks()
    grid = "".join(f"M{_LEFT} {axis.at(tick):.1f}H{_WIDTH - _RIGHT}" for tick in ticks)
    names = [Label(milliseconds(tick), _LEFT - 5, axis.at(tick) + 3.5, "end") for tick in ticks]
    return [Shape("grid", grid), *names]


def _whole(value: float) -> str:
    return f"{value:.0f}"


def _line(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _dots(points: Iterable[tuple[float, float]]) -> str:
    return "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
