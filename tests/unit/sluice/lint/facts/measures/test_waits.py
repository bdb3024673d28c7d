"""Rows of waits: constant ones are found, growing ones never."""

from collections.abc import Callable
from random import Random

import pytest

from sluice.journal_events import Gap
from sluice.lint.facts.measures.waits import Row, Rows

EVENT = Gap(seq=1, at_ns=1, broker=-1, lost=0)
LONG_AFTER_NS = 10**15
SHAPES = [(1, 6), (2, 3), (5, 4), (20, 5)]  # rows, and waits in each
Draw = Callable[[Random, int], float]


def kip_580(base_ms: float, maximum_ms: float) -> Draw:
    return lambda random, failures: min(base_ms * float(2**failures) * random.uniform(0.8, 1.2), maximum_ms)


def librdkafka(random: Random, failures: int) -> float:
    return float(min(100 * 2**failures, 1000)) * random.uniform(0.75, 1.5)


def full_jitter(random: Random, failures: int) -> float:
    return 100 * float(2**failures) * random.random()


def constant(base_ms: float, jitter: float = 0.0) -> Draw:
    return lambda random, _: base_ms * random.uniform(1 - jitter, 1 + jitter)


def rows(draw: Draw, shape: tuple[int, int], random: Random, late_ms: float) -> Rows:
    made = Rows()
    for _ in range(shape[0]):
        row = Row(1, LONG_AFTER_NS)
        for failures in range(shape[1]):
            waited_ms = draw(random, failures) + random.expovariate(1 / late_ms)
            row = made.add(row, round(waited_ms * 1000), EVENT)
    return made


GROWING = {
    "of Kafka's defaults": kip_580(100, 1000),
    "that grow once": kip_580(500, 1000),
    "of franz-go's defaults": kip_580(250, 2500),
    "of librdkafka's jitter": librdkafka,
    "of full jitter": full_jitter,
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("draw", GROWING.values(), ids=GROWING)
def test_growing_waits(draw: Draw, shape: tuple[int, int]) -> None:
    random = Random(0)
    assert not any(rows(draw, shape, random, late_ms=5).constant() for _ in range(3))


CONSTANT = {
    "without jitter": (constant(100), 100),
    "with jitter": (constant(100, 0.2), 100),
    "in a tight loop": (constant(2), 4),
    "whose base is the maximum": (kip_580(100, 100), 100),
}


@pytest.mark.parametrize(("draw", "about_ms"), CONSTANT.values(), ids=CONSTANT)
def test_constant_waits(draw: Draw, about_ms: float) -> None:
    random = Random(0)
    found = [rows(draw, (20, 8), random, late_ms=2).constant() for _ in range(3)]
    assert all(each is not None and each.base_ms == pytest.approx(about_ms, rel=0.4) for each in found)


EARLIER = {
    "the client was seen before": (1, 900, True),
    "the first attempts may be missing, and the wait be the maximum": (0, 900, False),
    "the wait is too short for a maximum": (0, 400, True),
}


@pytest.mark.parametrize(("before_ns", "wait_ms", "is_found"), EARLIER.values(), ids=EARLIER)
def test_rows_that_may_have_begun_earlier(before_ns: int, wait_ms: int, *, is_found: bool) -> None:
    made, row = Rows(), Row(before_ns, LONG_AFTER_NS)
    for _ in range(8):
        row = made.add(row, wait_ms * 1000, EVENT)
    assert (made.constant() is not None) is is_found


def test_a_pause_ends_a_row() -> None:
    made, row = Rows(), Row(1, LONG_AFTER_NS)
    for wait_ms in (100, 100, 30_000, 100, 100, 30_000, 100, 100):
        row = made.add(row, wait_ms * 1000, EVENT)
    assert made.constant() is None
    assert [step.count for step in made.steps] == [3, 3]
