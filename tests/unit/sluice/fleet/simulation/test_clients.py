"""Tests of the vectorised backoff against Kafka's formula (sluice/client/backoff.py)."""

from functools import partial

import numpy as np
import pytest

from sluice.client.backoff import ExponentialBackoff
from sluice.fleet.models.client_model import ClientModel
from sluice.fleet.simulation.clients import Clients
from sluice.fleet.simulation.parameters import Parameters, lanes_of


def _at(unit: float, low: float, high: float) -> float:
    return low + (high - low) * unit


_UNITS = np.linspace(0, 1, 41, endpoint=False)


@pytest.mark.parametrize(
    ("base", "maximum", "jitter"), [(100, 1000, 0.2), (50, 1000, 0.2), (50, 50, 0.2), (1, 100_000, 0.5), (7, 1000, 0.0)]
)
def test_waits_are_those_of_kafkas_formula(base: int, maximum: int, jitter: float) -> None:
    model = ClientModel(retry_backoff_ms=base, retry_backoff_max_ms=maximum, retry_backoff_jitter=jitter)
    table = Parameters(lanes_of(model)).retry
    models = np.zeros(len(_UNITS), dtype=np.int64)
    for failures in (1, 2, 3, 4, 5, 6, 20, 255):
        waits = table.wait_us(models, np.full(len(_UNITS), failures), _UNITS)
        expected = [
            ExponentialBackoff(base, 2, maximum, jitter, partial(_at, unit)).backoff(failures - 1) * 1000
            for unit in _UNITS.tolist()
        ]
        assert abs(waits - expected).max() <= 1000, failures  # a millisecond, by rounding of the factor
        assert (waits == expected).mean() > 0.95


def test_a_backoff_of_32_bits_becomes_none_and_restarts() -> None:
    """The product (1 << n) * 100 as an int is negative for n of 25, 26, 29, and 0 from 30 on; n of 32 is 0."""
    model = ClientModel(retry_backoff_jitter=0, retry_backoff_wraps=True)
    table = Parameters(lanes_of(model)).retry
    failures = np.array([1, 4, 5, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34])
    waits = table.wait_us(np.zeros(len(failures), int), failures, np.zeros(len(failures))) // 1000
    assert waits.tolist() == [100, 800, 1000, 1000, 0, 0, 1000, 1000, 0, 0, 0, 100, 200]


def test_failures_are_counted_on_without_changing_a_wrapped_shift() -> None:
    clients = Clients(1, np.zeros(1, dtype=np.int64), Parameters(lanes_of(ClientModel())), 1, 1)
    counted = [int(clients.count_failure(clients.failures, np.zeros(1, dtype=np.int64))[0]) for _ in range(300)]
    assert counted[:255] == list(range(1, 256))
    assert [count % 32 for count in counted] == [n % 32 for n in range(1, 301)]


@pytest.mark.parametrize(
    ("redraws", "of_metadata", "mean_ms"), [(True, False, 110.3), (True, True, 108.2), (False, True, 99.5)]
)
def test_redrawn_waits_are_longer(redraws: bool, of_metadata: bool, mean_ms: float) -> None:
    """Draws u from 0 to 1 become waits with the density u * exp(u) for one check (sluice/audit/judge/fit.py)."""
    model = ClientModel(metadata_backoff_redraws=redraws)
    clients = Clients(1, np.zeros(40_000, dtype=np.int64), Parameters(lanes_of(model)), 1, 1)
    rows = np.arange(40_000)
    wait_us = clients.metadata_wait_us if of_metadata else clients.retry_wait_us
    waits = wait_us(rows, np.ones(40_000, dtype=np.int64)) / 1000
    assert waits.mean() == pytest.approx(mean_ms, abs=0.4)
    assert waits.min() >= 80
    assert waits.max() < 120


def test_a_clients_reconnect_backoff_may_cover_all_brokers() -> None:
    models = [ClientModel(reconnect_backoff_scope=scope) for scope in ("broker", "client")]
    clients = Clients(1, np.arange(2), Parameters([lane for model in models for lane in lanes_of(model)]), 3, 3)
    rows, at = np.arange(2), np.full(2, 1000)
    for broker in range(2):
        clients.connection_failed(rows, np.full(2, broker), at, np.zeros(2, dtype=np.bool_))
    assert clients.connect_failures.tolist() == [[1, 1, 0], [2, 0, 0]]
    assert (clients.connect_us[0] > 1000).tolist() == [True, True, False]
    assert (clients.connect_us[1] > 80_000).all()
