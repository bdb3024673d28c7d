"""The plots of one verdict, as SVG: when attempts came, and what was waited before each, against what the KIP allows.

Dots are strokes of no length with round ends, hundreds of which are one short path. Colours are the page's.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, zip_longest
from math import ceil

from sluice.audit.judge.model.attempts import Outcome
from sluice.audit.judge.model.verdict import Fit, Series

from .axis import Axis, axis_of
from .markup import Markup, element, joined
from .words import milliseconds

MOST_SERIES = 12  # of a plot: more would be a blot
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 380, 50, 8, 8, 34
_HEIGHT = 230
_ROW = 14
_BEYOND_ANY_WAIT_MS = 1e9  # a bound of no meaning
# Of retries that follow each other the bands touch.
_HALF_STEP = 0.5
_FEW_RETRIES = 10


def attempts_plot(series: Sequence[Series]) -> Markup:
    """A row for each sequence: its attempts, and between them when the next was allowed to come."""
    shown = series[:MOST_SERIES]
    bottom = _TOP + _ROW * len(shown)
    last = max((each.at_ms[-1] for each in shown if each.at_ms), default=0.0)
    along = Axis(0.0, last * 1.03 or 1.0, _LEFT, _WIDTH - _RIGHT, is_log=False)
    rows = [_row(each, number, _TOP + _ROW * (number + 0.5), along) for number, each in enumerate(shown)]
    parts = [*_along(along, bottom, "since the first attempt", milliseconds), *rows]
    return _svg(bottom + _BOTTOM, "Attempts over time", parts)


def waits_plot(series: Sequence[Series], fit: Fit | None) -> Markup:
    """What was waited before each retry, the band that is allowed, and the model that fits best."""
    shown = [each for each in series if each.waited_ms][:MOST_SERIES]
    retries = max((len(each.waited_ms) for each in shown), default=1)
    lows, highs = _band(shown)
    fitted = [] if fit is None else [_fitted(fit, retry) for retry in range(1, _until_reset(lows, retries) + 1)]
    waits = [wait for each in shown for wait in each.waited_ms]
    down = axis_of([*waits, *lows, *highs, *fitted], _HEIGHT - _BOTTOM, _TOP)
    along = Axis(1 - _HALF_STEP, retries + _HALF_STEP, _LEFT, _WIDTH - _RIGHT, is_log=False)
    parts = [*_along(along, _HEIGHT - _BOTTOM, "retry", _whole), *_down(down)]
    if lows:
        parts.append(_shape("band", _band_path(lows, highs, along, down)))
    if fitted:
        parts.append(_shape("fit", _line((along.at(at), down.at(wait)) for at, wait in enumerate(fitted, 1))))
    dots = [
        (along.at(at + _aside(number, len(shown), retries)), down.at(wait))
        for number, each in enumerate(shown)
        for at, wait in enumerate(each.waited_ms, 1)
    ]
    parts.append(_shape("dots wait", _dots(dots)))
    return _svg(_HEIGHT, "Waits before each retry", parts)


def _until_reset(lows: Sequence[float], retries: int) -> int:
    """How many retries there are before the rule begins anew: a model is of one row of failures."""
    return next((at for at, (before, low) in enumerate(pairwise(lows), 1) if low < before), retries)


def _aside(number: int, of: int, retries: int) -> float:
    """Sequences stand side by side where there is room, as a dot that hides another counts for none."""
    return 0.0 if of == 1 or retries > _FEW_RETRIES else _HALF_STEP * (number / (of - 1) - 0.5)


def _row(series: Series, number: int, y: float, along: Axis) -> Markup:
    allowed = "".join(_window(series, at, y, along) for at in range(len(series.low_ms)))
    succeeded, failed, open_ended = (list[tuple[float, float]]() for _ in range(3))
    for at_ms, outcome in zip_longest(series.at_ms, series.outcomes[: len(series.at_ms)], fillvalue=""):
        places = {Outcome.SUCCEEDED: succeeded, Outcome.ABANDONED: open_ended, Outcome.UNANSWERED: open_ended}
        places.get(Outcome(outcome) if outcome else Outcome.ERROR, failed).append((along.at(float(at_ms)), y))
    name = element("text", str(number + 1), x=_LEFT - 10, y=y + 3.5, class_="end")
    parts = [name, _shape("lane", f"M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}")]
    parts += [_shape("band", allowed)] if allowed else []
    for kind, places_ in (("failed", failed), ("open", open_ended), ("succeeded", succeeded)):
        if places_:
            parts.append(_shape(f"dots {kind}", _dots(places_)))
    return element("g", *parts)


def _window(series: Series, at: int, y: float, along: Axis) -> str:
    """When the attempt behind this wait was allowed to come: from the end of the one before on."""
    if at + 1 >= len(series.at_ms) or at >= len(series.waited_ms):
        return ""
    ended = series.at_ms[at + 1] - series.waited_ms[at]
    left, right = along.at(ended + series.low_ms[at]), along.at(ended + series.high_ms[at])
    half = _ROW / 2 - 2
    return f"M{left:.1f} {y - half:.1f}H{max(right, left + 1):.1f}v{2 * half:g}H{left:.1f}z"


def _band(shown: Sequence[Series]) -> tuple[list[float], list[float]]:
    """The least and the most that is allowed before each retry, of all that are shown."""
    lows = [min(_there(each)) for each in zip_longest(*(one.low_ms for one in shown))]
    highs = [max(_there(each)) for each in zip_longest(*(one.high_ms for one in shown))]
    largest = max((wait for each in shown for wait in each.waited_ms), default=1.0)
    # A band without an end ends above all that there is to see.
    return lows, [
        min(high, 4 * max(largest, low)) if high > _BEYOND_ANY_WAIT_MS else high
        for low, high in zip(lows, highs, strict=True)
    ]


def _there(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _band_path(lows: Sequence[float], highs: Sequence[float], along: Axis, down: Axis) -> str:
    """Steps along the top, and back along the bottom."""
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
        # Of a counter that goes on for hours the power is no number any more.
        wait = fit.base_ms * fit.multiplier ** min(retry - 1, 64)
    elif fit.model == "linear":
        wait = fit.base_ms + fit.multiplier * (retry - 1)
    else:
        wait = fit.base_ms
    return wait if fit.cap_ms is None else min(wait, fit.cap_ms)


def _along(axis: Axis, bottom: float, words: str, in_words: Callable[[float], str]) -> list[Markup]:
    """The axis at the bottom."""
    ticks = axis.ticks()
    if in_words is _whole:
        ticks = sorted({float(ceil(tick)) for tick in ticks if axis.low <= ceil(tick) <= axis.high})
    marks = [_shape("grid", "".join(f"M{axis.at(tick):.1f} {_TOP}V{bottom:.1f}" for tick in ticks))]
    marks += [element("text", in_words(tick), x=axis.at(tick), y=bottom + 13, class_="middle") for tick in ticks]
    middle = (axis.start + axis.end) / 2
    return [*marks, element("text", words, x=middle, y=bottom + 28, class_="middle axis")]


def _down(axis: Axis) -> list[Markup]:
    """The axis at the left."""
    ticks = axis.ticks()
    grid = "".join(f"M{_LEFT} {axis.at(tick):.1f}H{_WIDTH - _RIGHT}" for tick in ticks)
    names = [element("text", milliseconds(tick), x=_LEFT - 5, y=axis.at(tick) + 3.5, class_="end") for tick in ticks]
    return [_shape("grid", grid), *names]


def _whole(value: float) -> str:
    return f"{value:.0f}"


def _line(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _dots(points: Iterable[tuple[float, float]]) -> str:
    return "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)


def _shape(class_: str, path: str) -> Markup:
    return element("path", d=path, class_=class_)


def _svg(height: float, title: str, parts: Iterable[Markup]) -> Markup:
    return element(
        "svg", element("title", title), joined(*parts), viewBox=f"0 0 {_WIDTH} {height:g}", role="img", class_="plot"
    )
