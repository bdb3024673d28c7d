"""What a log shows of a demand: a mean with its uncertainty, or a lower bound."""

import pytest

from sluice.spark.charges.charges import Client, Columns, Kind, lane_of
from sluice.spark.charges.from_journal import LOST
from sluice.spark.plan.coverage import coverage_of, is_partial, warnings_of
from sluice.spark.plan.demand import Confidence, Demand, Stated, measure_demand, state

MS = 1_000_000
LEAST_MS = 110_000
SHOP = Client("Produce", "1", "", "shop")


def measured(rows: list[tuple[int, int]], client: Client = SHOP, throttle_ms: int = 0) -> Demand:
    """Measure requests of these times in ms and sizes; the last one has a throttle time."""
    columns = Columns()
    for at_ms, value in rows:
        columns.append(at_ms * MS, value, lane_of(1, 9), throttle_ms if at_ms == rows[-1][0] else 0)
    found = measure_demand(client, [columns.pack()])
    assert found is not None
    return found


def every(step_ms: int, count: int, value: int = 1000) -> list[tuple[int, int]]:
    return [(step_ms * number, value) for number in range(count)]


STEADY = every(200, 901)  # 5 kB/s for 180 s


def stated(*demands: Demand, is_partial: bool = False) -> list[Stated]:
    return list(state(demands, LEAST_MS, is_partial=is_partial).values())


CONFIDENCES = {
    "requests at a constant rate": (STEADY, "known"),
    "requests for a minute": (every(200, 301), "brief"),
    "one request": ([(0, 1000)], "brief"),
    "requests at one time": ([(0, 1000)] * 3, "brief"),
    # One burst in each of the ten parts: they do not differ, but the log could have been one burst longer.
    "ten regular bursts": (every(13_000, 10), "uncertain"),
    "three bursts": (every(80_000, 3), "irregular"),
}


@pytest.mark.parametrize(("rows", "confidence"), CONFIDENCES.values(), ids=CONFIDENCES)
def test_the_confidence_of_a_demand(rows: list[tuple[int, int]], confidence: Confidence) -> None:
    (found,) = stated(measured(rows))
    assert found.confidence == confidence


def test_the_uncertainty_of_regular_bursts_covers_a_longer_log() -> None:
    found = measured(every(13_000, 10))
    assert found.rate * (1 - found.uncertainty) <= 1000 / 13 <= found.rate


THROTTLED = {
    "another producer may send as before": ("Produce", "1", "other", "known"),
    "the client may send less to another broker": ("Produce", "2", "shop", "throttled"),
    "consumers read what producers wrote": ("Fetch", "1", "other", "throttled"),
}


@pytest.mark.parametrize(("kind", "broker", "client_id", "confidence"), THROTTLED.values(), ids=THROTTLED)
def test_a_throttled_producer_limits_others(kind: Kind, broker: str, client_id: str, confidence: Confidence) -> None:
    other = measured(STEADY, Client(kind, broker, "", client_id))
    assert [each.confidence for each in stated(measured(STEADY, throttle_ms=9), other)] == ["throttled", confidence]


def test_a_throttled_consumer_does_not_limit_producers() -> None:
    consumer = measured(STEADY, Client("Fetch", "1", "", "reader"), throttle_ms=9)
    assert [each.confidence for each in stated(measured(STEADY), consumer)] == ["known", "throttled"]


LOWER_BOUNDS = {
    "a throttled client: what it sent, without the last request": (STEADY, 9, False, 5000),
    "an incomplete log": (STEADY, 0, True, 5000),
    "a client seen for a third of the log: averaged over the log": (every(200, 301), 0, False, 1667),
    "too few bursts: nothing": (every(80_000, 3), 0, False, 0),
}


@pytest.mark.parametrize(("rows", "throttle_ms", "is_partial", "rate"), LOWER_BOUNDS.values(), ids=LOWER_BOUNDS)
def test_a_lower_bound(rows: list[tuple[int, int]], throttle_ms: int, is_partial: bool, rate: float) -> None:
    whole = measured(STEADY, SHOP._replace(client_id="whole"))
    found, _ = stated(measured(rows, throttle_ms=throttle_ms), whole, is_partial=is_partial)
    assert not found.is_known
    assert 0.97 * rate <= found.rate <= rate


ADVICE = {
    "a throttled client": (STEADY, 9, "record at least 2 minutes without quotas"),
    "a short log": (every(200, 301), 0, "record at least 2 minutes"),
    "an irregular client": (every(80_000, 3), 0, "record at least 8 minutes"),
}


@pytest.mark.parametrize(("rows", "throttle_ms", "advice"), ADVICE.values(), ids=ADVICE)
def test_what_to_record_is_stated(rows: list[tuple[int, int]], throttle_ms: int, advice: str) -> None:
    demands = [measured(rows, throttle_ms=throttle_ms)]
    coverage = coverage_of(demands, state(demands, LEAST_MS, is_partial=False), {}, LEAST_MS)
    assert coverage.advice == advice
    assert warnings_of(coverage)[-1] == f"To know all demands: {advice}."


def test_a_log_with_lost_events_is_partial() -> None:
    assert is_partial({LOST: 1})
    assert not is_partial({LOST: 0})
