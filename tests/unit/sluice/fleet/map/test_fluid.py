"""Tests of the fluid model: against the simulation, and of what does not depend on other cells."""

import numpy as np
import pytest
from msgspec.structs import replace

from sluice.fleet.map.fluid import Cell, recover
from sluice.fleet.map.grid import region_of, simulated_region
from sluice.fleet.models.client_model import Group
from sluice.fleet.models.presets import PRESETS
from sluice.fleet.simulation.broker import BROKERS
from sluice.fleet.sweep import OBSERVED_S

_CLIENTS = 200


def _cell(model: str, load: float, timeout_ms: float, *, outage_s: float = 20, **more: float) -> Cell:
    client = replace(PRESETS[model], request_timeout_ms=timeout_ms, **more)
    broker = BROKERS["kafka"].scaled_to(_CLIENTS * client.requests_per_s / load)
    return Cell([Group(model, client, _CLIENTS)], broker, outage_s)


REGIONS = {
    "timeouts that are longer than the queue": (_cell("java", 0.3, 30_000), "recovers"),
    "a load that leaves little to drain the queue": (_cell("java", 0.8, 30_000), "late"),
    "timeouts that are shorter than the queue": (_cell("java", 0.5, 2000), "never"),
    "more clients for the same load": (_cell("java", 0.1, 30_000, requests_per_s=0.1), "late"),
    "a backoff that spreads clients": (_cell("java", 0.5, 3000, reconnect_backoff_max_ms=20_000.0), "late"),
    "a constant backoff": (_cell("aiokafka", 0.5, 2000), "never"),
    "connections at the ticks of a timer": (_cell("librdkafka", 0.2, 5000), "recovers"),
}


@pytest.mark.parametrize(("cell", "expected"), REGIONS.values(), ids=REGIONS)
def test_region_is_that_of_the_simulation(cell: Cell, expected: str) -> None:
    (recovery_s,) = recover([cell], OBSERVED_S).recovery_s
    assert region_of(int(recovery_s)) == expected
    assert simulated_region(cell, 0) == expected


def test_requests_of_a_fleet_that_does_not_recover_exceed_the_capacity_in_vain() -> None:
    lost, well = _cell("java", 0.5, 2000), _cell("java", 0.3, 30_000)
    found = recover([lost, well], OBSERVED_S)
    assert found.load[0] > 1
    assert found.in_vain[0] > 0.95
    assert found.in_vain[1] == 0


def test_a_cell_does_not_depend_on_the_others() -> None:
    cells = [
        _cell("java", load, timeout_ms, outage_s=outage_s)
        for load in (0.1, 0.3, 0.5)
        for timeout_ms in (3000, 30_000)
        for outage_s in (5, 30)
    ]
    together = recover(cells, 60).recovery_s
    apart = [int(recover([cell], 60).recovery_s[0]) for cell in cells]
    assert len(set(apart)) >= 4
    # The wheel of later steps is as long as the longest timeout of all cells.
    assert np.abs(together - np.array(apart)).max() <= 1


def test_groups_of_a_cell_share_the_queue() -> None:
    group = _cell("java", 0.5, 5000).groups[0]
    broker = _cell("java", 0.5, 5000).broker
    halves = [group._replace(clients=_CLIENTS // 2)] * 2
    one, two = recover([Cell([group], broker, 20)], 60), recover([Cell(halves, broker, 20)], 60)
    assert abs(int(one.recovery_s[0]) - int(two.recovery_s[0])) <= 1
