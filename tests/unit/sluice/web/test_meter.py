"""A meter reads the enforced rate and the charges since the last read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
from sluice.web.meter import Meter, MeterSeen

START_MS = 1_700_000_000_000
BUCKET = (None, "c")


def _manager(bound: float = 1e6) -> ClientQuotaManager:
    manager = ClientQuotaManager("Produce", QuotaConfig(), QuotaTable("unlimited"))
    manager.set_quota(QuotaEntity(client_id=DEFAULT), bound)
    return manager


def _meter(manager: ClientQuotaManager) -> Meter:
    sensors = manager.peek_sensors(BUCKET)
    assert sensors is not None
    return Meter(sensors)


def _read(meter: Meter, at_ms: int) -> MeterSeen:
    return meter.read("Produce", 1, BUCKET, START_MS + at_ms)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 5_000_000), st.booleans()), min_size=1, max_size=60))
def test_reads_return_all_charges(steps: list[tuple[int, int, bool]]) -> None:
    """The charges of all reads add up to the recorded value, for any samples."""
    manager = _manager()
    manager.record("u", "c", 1, START_MS)
    meter = _meter(manager)
    _read(meter, 0)
    at_ms, recorded, seen = 0, 0.0, 0.0
    for wait_ms, value, measures in steps:
        at_ms += wait_ms
        if measures:
            manager.measure("u", "c", START_MS + at_ms)
        manager.record("u", "c", value, START_MS + at_ms)
        recorded += value
        meter.read("Produce", 1, BUCKET, START_MS + at_ms)
        seen += meter.charged
    assert seen == pytest.approx(recorded)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 5_000_000)), min_size=1, max_size=60))
def test_the_rate_is_the_enforced_rate(steps: list[tuple[int, int]]) -> None:
    manager = _manager()
    at_ms = 0
    for wait_ms, value in steps:
        at_ms += wait_ms
        manager.record("u", "c", value, START_MS + at_ms)
    (usage,) = manager.snapshot(START_MS + at_ms)
    assert _read(_meter(manager), at_ms).rate == pytest.approx(usage.rate, abs=0.01)


def test_a_throttle_time_is_shown_until_it_ends() -> None:
    manager = _manager()
    throttle_ms = manager.record("u", "c", 12e6, START_MS)
    assert throttle_ms == 2000
    meter = _meter(manager)
    manager.record_throttle_time("u", "c", throttle_ms, START_MS)
    seen = _read(meter, 1999)
    assert (seen.throttle_ms, seen.held_until_ms, seen.throttled_total_ms) == (2000, START_MS + 2000, 2000)
    seen = _read(meter, 2000)
    assert (seen.throttle_ms, seen.held_until_ms, seen.throttled_total_ms) == (0, 0, 2000)


def test_a_removed_charge_of_a_fetch_is_not_counted() -> None:
    manager = _manager()
    manager.record("u", "c", 1e6, START_MS)
    meter = _meter(manager)
    _read(meter, 0)
    manager.record("u", "c", 5e6, START_MS + 10)
    manager.unrecord("u", "c", 5e6, START_MS + 10)
    _read(meter, 20)
    assert meter.charged == 0


def test_an_unlimited_bound_is_none() -> None:
    manager = _manager()
    manager.record("u", "c", 1.0, START_MS)
    manager.set_quota(QuotaEntity(client_id=DEFAULT), None)
    seen = _read(_meter(manager), 0)
    assert (seen.bound, seen.share) == (None, 0.0)
