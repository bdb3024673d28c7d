"""Tests of random numbers that do not depend on the order of events."""

import numpy as np

from sluice.fleet.simulation.arrays import uniform

_CLIENTS = np.arange(20_000)


def test_a_draw_depends_on_seed_client_and_number_only() -> None:
    draws = np.full(len(_CLIENTS), 3, dtype=np.uint32)
    shuffled = np.random.default_rng(1).permutation(_CLIENTS)
    assert (uniform(7, _CLIENTS, draws)[shuffled] == uniform(7, shuffled, draws)).all()
    assert uniform(7, _CLIENTS[:1], draws[:1])[0] == 0.30794958315676235


def test_draws_are_uniform_and_independent() -> None:
    first, second, other = (
        uniform(seed, _CLIENTS, np.full(len(_CLIENTS), number, dtype=np.uint32))
        for seed, number in ((7, 0), (7, 1), (8, 0))
    )
    for drawn in (first, second, other):
        assert 0 <= drawn.min() < 0.001 < 0.999 < drawn.max() < 1
        counts = np.histogram(drawn, bins=20, range=(0, 1))[0]
        assert abs(counts - 1000).max() < 150  # five standard deviations
    # Correlations of independent draws have a standard deviation of 0.007.
    assert abs(np.corrcoef([first, second, other, np.roll(first, 1)]) - np.eye(4)).max() < 0.035
