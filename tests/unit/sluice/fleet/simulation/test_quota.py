"""Tests of the vectorised quotas: the sensors against those of the broker, and what a quota does to a fleet."""

import numpy as np
import pytest

from sluice.errors import ScenarioError
from sluice.fleet.models.client_model import ClientModel, Group
from sluice.fleet.simulation.counters import Count
from sluice.fleet.simulation.engine import Simulation, simulate
from sluice.fleet.simulation.quota import Sensors
from sluice.quotas.sensor import Rate, Sensor
from tests.support.fleet_simulation import FAST, schedule_with


@pytest.mark.parametrize("gap_ms", [1, 100, 400, 3000])
def test_throttle_times_are_those_of_the_brokers_sensors(gap_ms: int) -> None:
    random = np.random.default_rng(gap_ms)
    buckets, bounds = 40, np.geomspace(10, 1e7, 40)
    ours, theirs = Sensors(buckets), [Sensor(Rate(11, 1000), bound, 0) for bound in bounds]
    now_ms = np.zeros(buckets, dtype=np.int64)
    seen = 0
    for _ in range(400):
        rows = np.flatnonzero(random.random(buckets) < 0.7)
        gaps_ms = random.exponential(gap_ms, len(rows)) * random.choice([0, 1, 1, 8], len(rows))
        now_ms[rows] += gaps_ms.astype(np.int64)
        values = np.floor(random.exponential(bounds[rows] * gap_ms / 500) + 1)
        found = ours.record(rows, values, now_ms[rows], bounds[rows])
        expected = [
            theirs[row].record_and_get_throttle_time_ms(value, at)
            for row, value, at in zip(rows.tolist(), values.tolist(), now_ms[rows].tolist(), strict=True)
        ]
        assert found.tolist() == expected
        seen += int(np.count_nonzero(found))
    assert seen > 300


def _run(rate: float | None, *, shared: bool = False, **model: object) -> Simulation:
    quota = {"client_id": "bulk" if shared else "<default>", "producer_byte_rate": rate}
    steps: list[dict[str, object]] = [] if rate is None else [{"at": "0s", "quota": quota}]
    group = Group("bulk", ClientModel(**{"record_bytes": 5000, "requests_per_s": 20, **model}), 10)  # type: ignore[arg-type]
    return simulate([group], schedule_with(*steps, brokers=1), FAST, seed=1)


@pytest.mark.parametrize("shared", [False, True])
def test_clients_send_their_quota_after_a_burst_of_ten_seconds(shared: bool) -> None:
    """10 clients want 100 kB/s each: each may send 20 kB/s, or all together 200 kB/s."""
    run = _run(200_000 if shared else 20_000, shared=shared, loop="closed")
    by_second = run.counts[:, Count.BYTES].reshape(60, 10).sum(axis=1)
    assert by_second[0] == pytest.approx(1_000_000, rel=0.1)
    assert by_second[22:].mean() == pytest.approx(200_000, rel=0.1)
    assert run.counts[:, Count.THROTTLED_US].sum() > 0
    assert run.fairness is not None
    assert run.fairness.jain > (0.9 if shared else 0.999)
    assert run.fairness.throttle_p99_ms > 500


def test_without_a_quota_nothing_is_throttled() -> None:
    run = _run(None)
    assert run.fairness is None
    assert not run.counts[:, Count.THROTTLED_US].any()
    assert run.counts[:, Count.BYTES].sum() == run.counts[:, Count.COMPLETED].sum() * 5000


def test_other_quotas_are_refused() -> None:
    quota = {"client_id": "a", "consumer_byte_rate": 1}
    with pytest.raises(ScenarioError, match="expected client_id and producer_byte_rate"):
        schedule_with({"at": "0s", "quota": quota}, duration="1s")
