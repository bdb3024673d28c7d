"""The backoff that best explains observed waits: model (constant, linear, exponential), base, cap and jitter.

Waits come in rows, one per streak of failures; the n-th wait of a row followed n failures. Jitter is proportional to
the value. Scheduling can only lengthen a wait.

*Model.* Least squares of the logarithms, in closed form, for each model and each n at which the cap may begin. The
lowest Bayesian information criterion wins. A deviation below 2 % counts as rounding.

*Confidence.* The share of resamples of the rows (of a single row: its waits) in which the same model wins.

*Base and jitter.* Each wait below the cap, divided by the growth, is a draw around the base: uniform if a client draws
once per wait. Kafka's producer and metadata redraw on every poll, and proceed when the draw does not exceed the elapsed
time: with u from 0 to 1 across the jitter range, the density is u * exp(u), or u**2 * exp(u + u**2 / 2) with two polls.
The most likely of these three densities gives base and jitter; redrawing is assumed only if it is much more likely.
Redrawn waits show little of the lower end: for two polls no estimator has a standard deviation of the jitter below 4 %
with 480 waits, or 1.6 % with 3,000.

*Cap.* Kafka caps after the jitter, so half of the draws equal the cap. If a third of the waits there are nearly equal
(of many waits, a fifth), that value is the cap, otherwise the midpoint. By chance, this is wrong in 1 of 1,000 fits.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from math import exp, inf, log
from random import Random  # noqa: TID251  (the type of an argument)
from statistics import fmean, median, quantiles
from typing import NamedTuple

from sluice.audit.judge.model.verdict import Fit

CONSTANT, LINEAR, EXPONENTIAL = "constant", "linear", "exponential"

_RESAMPLES = 40
_LEAST_WAITS = 3
# A constant or linear model with a larger spread explains nothing; an exponential one may have full jitter.
_ALIKE = 0.5
_USUAL = 0.9  # share of the waits whose distance from the model is reported
_SHORTEST_MS = 0.5  # shorter intervals are not waits; their logarithms would dominate the fit
_ROUNDING = 0.02**2
# A multiplier within 10 % of one of these is rounded to it.
_MULTIPLIERS, _NEAR = (1.5, 2.0, 3.0, 4.0, 5.0, 10.0), 0.1
# A model that grows by less than this factor over all steps is constant.
_LEAST_GROWTH = 1.3
_AS_LONG = 0.01
_CAPPED_SHARE = 1 / 3
_EQUAL_SHARE, _MANY_EQUAL = 1 / 5, 6
# Waits this many interquartile ranges outside the middle half are outliers; fewer than _FEW waits have none.
_FAR, _FEW = 3.0, 8
# Input limits: waits of a row (growth), rows for the model, rows for the jitter.
_LONGEST_ROW, _MOST_ROWS, _MOST_ROWS_FOR_JITTER = 40, 200, 1000
_LAST_CAPPED_FROM = 20
# The log-likelihood ratio from which redrawing is assumed instead of one draw per wait.
_SURELY_NOT_UNIFORM = 4.0
_NARROWER = (5**0.5 - 1) / 2  # the share that one step of a golden-section search keeps
_SEARCH_STEPS = 24

Rows = Sequence[Sequence[float]]


class _Step(NamedTuple):
    """The number of waits after n failures, and the sums of their logarithms and squared logarithms."""

    size: int
    total: float
    squares: float


class _Model(NamedTuple):
    """A backoff function: `grown(n)` is the wait after n + 1 failures relative to the first one."""

    name: str
    criterion: float
    base_ms: float
    rate: float
    capped_from: int | None

    def grown(self, failures: int) -> float:
        if self.name == EXPONENTIAL:
            return self.rate**failures
        return 1 + failures * self.rate / self.base_ms if self.name == LINEAR else 1.0


def fit(rows: Rows, random: Random) -> Fit | None:
    waits = sum(map(len, rows))
    if waits < _LEAST_WAITS:
        return None
    rows = [row[:_LONGEST_ROW] for row in rows[:_MOST_ROWS_FOR_JITTER]]
    growing = rows[:_MOST_ROWS]
    model = _best(_steps(growing))
    same = sum(_best(_steps(_drawn_again(growing, random))).name == model.name for _ in range(_RESAMPLES))
    model = _snapped(model)
    cap_ms = _cap_ms(rows, model)
    base_ms, jitter = _base_and_jitter(rows, model, cap_ms)
    residual = _residual(rows, model, base_ms, cap_ms)
    if model.name != EXPONENTIAL and max(jitter, residual) > _ALIKE:
        return None
    return Fit(
        model=model.name,
        base_ms=base_ms,
        multiplier=model.rate if model.name != CONSTANT else 1.0,
        cap_ms=cap_ms,
        jitter=jitter,
        residual=residual,
        confidence=same / _RESAMPLES,
        waits=waits,
    )


def _steps(rows: Rows) -> list[_Step]:
    steps: list[_Step] = []
    for number in range(max(map(len, rows), default=0)):
        logs = [log(max(row[number], _SHORTEST_MS)) for row in rows if len(row) > number]
        steps.append(_Step(len(logs), sum(logs), sum(each * each for each in logs)))
    return steps


def _drawn_again(rows: Rows, random: Random) -> Rows:
    if len(rows) > 1:
        return [rows[random.randrange(len(rows))] for _ in rows]
    # A single row is resampled by dropping later waits: the others keep their positions.
    (row,) = rows
    kept = sorted(random.sample(range(len(row)), max(_LEAST_WAITS, len(row) * 2 // 3)))
    return [row[: kept[-1] + 1]]


# -- the model -------------------------------------------------------------------------------------------------------


def _best(steps: Sequence[_Step]) -> _Model:
    candidates = [_constant(steps)]
    for capped_from in (None, *range(2, min(len(steps), _LAST_CAPPED_FROM))):
        candidates += [
            model
            for model in (_exponential(steps, capped_from), _linear(steps, capped_from))
            if model is not None and _grows(model, len(steps))
        ]
    return min(candidates, key=lambda model: model.criterion)


def _grows(model: _Model, steps: int) -> bool:
    last = steps - 1 if model.capped_from is None else model.capped_from
    return model.grown(last) >= _LEAST_GROWTH


def _criterion(squared: float, count: int, parameters: int) -> float:
    return count * log(max(squared, 0.0) / count + _ROUNDING) + parameters * log(count)


def _around(steps: Sequence[_Step], value_of: Callable[[int], float]) -> float:
    squared = 0.0
    for number, step in enumerate(steps):
        if step.size:
            value = value_of(number)
            squared += step.squares - 2 * value * step.total + step.size * value * value
    return squared


def _mean(steps: Sequence[_Step]) -> float:
    return sum(step.total for step in steps) / sum(step.size for step in steps)


def _constant(steps: Sequence[_Step]) -> _Model:
    mean, count = _mean(steps), sum(step.size for step in steps)
    squared = _around(steps, lambda _: mean)
    return _Model(CONSTANT, _criterion(squared, count, 1), exp(mean), 1.0, None)


def _exponential(steps: Sequence[_Step], capped_from: int | None) -> _Model | None:
    growing = steps[:capped_from]
    count = sum(step.size for step in growing)
    mean_n = sum(number * step.size for number, step in enumerate(growing)) / count
    spread = sum(step.size * (number - mean_n) ** 2 for number, step in enumerate(growing))
    if not spread:
        return None
    mean = _mean(growing)
    covered = sum((number - mean_n) * (step.total - step.size * mean) for number, step in enumerate(growing))
    slope = covered / spread
    first = mean - slope * mean_n
    return _with_cap(EXPONENTIAL, steps, capped_from, exp(first), exp(slope), lambda number: first + slope * number)


def _linear(steps: Sequence[_Step], capped_from: int | None) -> _Model | None:
    growing = steps[:capped_from]
    # Least squares of relative deviations: weights of 1 / wait**2, from the means of each n.
    points = [(number, exp(step.total / step.size), step.size) for number, step in enumerate(growing) if step.size]
    weights = [count / value**2 for _, value, count in points]
    total = sum(weights)
    mean_n = sum(weight * number for weight, (number, _, _) in zip(weights, points, strict=True)) / total
    mean = sum(weight * value for weight, (_, value, _) in zip(weights, points, strict=True)) / total
    spread = sum(weight * (number - mean_n) ** 2 for weight, (number, _, _) in zip(weights, points, strict=True))
    if not spread:
        return None
    covered = sum(
        weight * (number - mean_n) * (value - mean) for weight, (number, value, _) in zip(weights, points, strict=True)
    )
    rate = covered / spread
    base_ms = mean - rate * mean_n
    if base_ms <= 0 or rate <= 0:
        return None
    return _with_cap(LINEAR, steps, capped_from, base_ms, rate, lambda number: log(base_ms + rate * number))


def _with_cap(
    name: str,
    steps: Sequence[_Step],
    capped_from: int | None,
    base_ms: float,
    rate: float,
    value_of: Callable[[int], float],
) -> _Model | None:
    growing = steps[:capped_from]
    squared = _around(growing, value_of)
    count = sum(step.size for step in steps)
    if capped_from is None:
        return _Model(name, _criterion(squared, count, 2), base_ms, rate, None)
    capped = steps[capped_from:]
    cap = _mean(capped)
    if cap > value_of(capped_from) + log(1.3) or cap < value_of(capped_from - 1) - log(1.3):
        return None
    squared += _around(capped, lambda _: cap)
    return _Model(name, _criterion(squared, count, 3), base_ms, rate, capped_from)


def _snapped(model: _Model) -> _Model:
    if model.name != EXPONENTIAL:
        return model
    near = min(_MULTIPLIERS, key=lambda each: abs(model.rate / each - 1))
    return model._replace(rate=near) if abs(model.rate / near - 1) <= _NEAR else model


# -- base, jitter, cap -----------------------------------------------------------------------------------------------


def _base_and_jitter(rows: Rows, model: _Model, cap_ms: float | None) -> tuple[float, float]:
    if model.capped_from is None or cap_ms is None:
        return _around_base(_ratios(rows, model, _LONGEST_ROW))
    # Jitter may have lifted the last wait before the cap above it: use it only if the cap is out of its reach.
    before = model.capped_from - 1
    base_ms, jitter = _around_base(_ratios(rows, model, before))
    if base_ms * (1 + jitter) * model.grown(before) * (1 + _AS_LONG) > cap_ms:
        return base_ms, jitter
    return _around_base(_ratios(rows, model, model.capped_from))


def _ratios(rows: Rows, model: _Model, steps: int) -> list[float]:
    ratios = [waited_ms / model.grown(number) for row in rows for number, waited_ms in enumerate(row[:steps])]
    return _near(ratios) or [row[0] for row in rows if row]


def _near(ratios: Sequence[float]) -> list[float]:
    if len(ratios) < _FEW:
        return list(ratios)
    first, middle, third = quantiles(ratios, n=4)
    away = max(_FAR * (third - first), _AS_LONG * middle)
    return [ratio for ratio in ratios if first - away <= ratio <= third + away]


def _around_base(ratios: Sequence[float]) -> tuple[float, float]:
    most, least = max(ratios), min(ratios)
    if len(ratios) < _LEAST_WAITS or most - least <= _AS_LONG * most:
        base_ms = median(ratios)
        return base_ms, (most - least) / 2 / base_ms if base_ms > 0 else 0.0
    simplest, *others = [_most_likely(ratios, density) for density in _DENSITIES]
    better = max(others)
    _, low, high = better if better[0] > simplest[0] + _SURELY_NOT_UNIFORM else simplest
    return (low + high) / 2, (high - low) / (high + low)


def _uniform(_: float) -> float:
    return 0.0


def _looked_at_once(u: float) -> float:
    return log(u) + u


def _looked_at_twice(u: float) -> float:
    return 2 * log(u) + u + u * u / 2


_DENSITIES: tuple[Callable[[float], float], ...] = (_uniform, _looked_at_once, _looked_at_twice)


def _most_likely(ratios: Sequence[float], log_density: Callable[[float], float]) -> tuple[float, float, float]:
    count, least, most = len(ratios), min(ratios), max(ratios)
    margin = (most - least) / (count - 1)
    if log_density is _uniform:
        low, high = least - margin / 2, most + margin / 2
        return -count * log(high - low), low, high
    high = most + margin / 8
    if least <= 0:  # overlapping attempts; not a drawn wait
        return -inf, least, high

    def likelihood(low: float) -> float:
        width = high - low
        return sum(log_density((ratio - low) / width) for ratio in ratios) - count * log(width)

    # The likelihood vanishes if the range begins at the smallest ratio, and falls again far below it.
    low = _highest(likelihood, max(least - 1.5 * (high - least), 0.0), least)
    return likelihood(low), low, high


def _highest(function: Callable[[float], float], low: float, high: float) -> float:
    left, right = high - (high - low) * _NARROWER, low + (high - low) * _NARROWER
    at_left, at_right = function(left), function(right)
    for _ in range(_SEARCH_STEPS):
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - (high - low) * _NARROWER
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + (high - low) * _NARROWER
            at_right = function(right)
    return (low + high) / 2


def _residual(rows: Rows, model: _Model, base_ms: float, cap_ms: float | None) -> float:
    if base_ms <= 0:
        return 0.0
    off = sorted(
        abs(waited / min(base_ms * model.grown(number), inf if cap_ms is None else cap_ms) - 1)
        for row in rows
        for number, waited in enumerate(row)
    )
    return off[round((len(off) - 1) * _USUAL)]


def _cap_ms(rows: Rows, model: _Model) -> float | None:
    if model.capped_from is None:
        return None
    capped = sorted(waited for row in rows for waited in row[model.capped_from + 1 :] or row[model.capped_from :])
    if not capped:
        return None
    # The longest wait may be a late one: look for the value where most waits are.
    near = Counter(round(waited / (capped[-1] * _AS_LONG)) for waited in capped)
    bucket, hits = near.most_common(1)[0]
    at = [waited for waited in capped if abs(round(waited / (capped[-1] * _AS_LONG)) - bucket) <= 1]
    are_equal = hits >= max(_MANY_EQUAL, len(capped) * _EQUAL_SHARE)
    if are_equal or (hits >= 2 and len(at) >= len(capped) * _CAPPED_SHARE):
        return median(at)
    return (capped[0] + capped[-1]) / 2 if len(capped) > 2 else fmean(capped)
