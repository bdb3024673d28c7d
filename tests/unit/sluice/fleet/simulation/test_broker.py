"""Tests of the broker's queue against a loop over all requests."""

import numpy as np
import pytest

from sluice.fleet.simulation.broker import BROKERS, CpuQueue


def _one_by_one(arrivals: list[int], costs: list[float], idle_from: float = 0.0) -> list[float]:
    ends = {}
    for index in sorted(range(len(arrivals)), key=lambda index: (arrivals[index], index)):
        idle_from = max(idle_from, arrivals[index]) + costs[index]
        ends[index] = idle_from
    return [ends[index] for index in range(len(arrivals))]


@pytest.mark.parametrize("load", [0.3, 0.9, 1.5])
def test_serves_in_order_of_arrival(load: float) -> None:
    random = np.random.default_rng(5)
    queue, idle_from = CpuQueue(), 0.0
    for window in range(10):
        arrivals = random.integers(window * 10_000, (window + 1) * 10_000, 200)
        costs = random.uniform(1, 2 * load * 50, 200)
        queue.begin_window()
        expected = _one_by_one(arrivals.tolist(), costs.tolist(), idle_from)
        assert queue.serve(arrivals, costs).tolist() == np.ceil(expected).tolist()
        idle_from = max(expected)


def test_later_calls_of_a_window_fill_gaps_and_add_to_the_work() -> None:
    queue = CpuQueue()
    queue.begin_window()
    assert queue.serve(np.array([0, 900]), np.array([100.0, 100.0])).tolist() == [100, 1000]
    assert queue.serve(np.array([400, 950]), np.array([100.0, 100.0])).tolist() == [500, 1100]
    queue.begin_window()
    assert queue.serve(np.array([1050]), np.array([10.0])).tolist() == [1110]


def test_a_restart_forgets_all_work() -> None:
    queue = CpuQueue()
    queue.begin_window()
    queue.serve(np.array([0]), np.array([1e9]))
    queue.restart()
    assert queue.serve(np.array([50]), np.array([10.0])).tolist() == [60]


def test_a_scaled_broker_keeps_the_proportions() -> None:
    scaled = BROKERS["kafka"].scaled_to(1000)
    assert scaled.produce_us == pytest.approx(1000)
    assert scaled.connection_us / scaled.metadata_us == pytest.approx(450 / 31)
    assert scaled.network_us == BROKERS["kafka"].network_us
