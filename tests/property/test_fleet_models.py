"""The models of clients make their attempts when the clients do: the vectorised simulation against the exact one.

The Kolmogorov-Smirnov distance is the largest difference between two distributions, here of the times of all attempts
from the failure on. 95 % of pairs of samples from one distribution are within 0.06 for 1,000 attempts each, and within
0.11 for 300. Without a limit: in a single broker, clients also rebootstrap (KIP-899), which the model does not.
"""

import numpy as np
import pytest
from msgspec.structs import replace

from sluice.broker.scenarios.files import scenario_of
from sluice.fleet.arrays import Times
from sluice.fleet.behaviour import TRACED
from sluice.fleet.broker import BrokerModel
from sluice.fleet.engine import Group, simulate
from sluice.fleet.exact import run_exact
from sluice.fleet.models.client_model import ClientModel
from sluice.fleet.schedule import schedule_of

CLIENTS = 60
FAILS_AT_US = 10_000_000
# The exact simulation takes no time for requests and packets.
FAST = BrokerModel(produce_us=1, metadata_us=1, connection_us=1, network_us=1)
# As in a long run, the last metadata before the failure came from a refresh by age.
KAFKA = ClientModel(metadata_max_age_ms=25_000)
IMPATIENT = replace(KAFKA, request_timeout_ms=3000)
BEFORE = replace(KAFKA, retry_backoff_max_ms=100, reconnect_backoff_max_ms=50)


def _error(code: str) -> dict[str, object]:
    return {"fault": {"api": "Produce", "action": {"kind": "error", "code": code}}}


@pytest.mark.parametrize(
    ("brokers", "step", "model", "distances"),
    [
        (3, {"kill": 1}, KAFKA, (0.1, 0.12, 0.05)),
        (3, {"kill": 1}, BEFORE, (0.05, 0.05, 0.05)),
        (1, {"kill": 1}, KAFKA, (0.06, None, 0.08)),
        (1, _error("NOT_LEADER_OR_FOLLOWER"), KAFKA, (None, 0.05, 0.02)),
        (1, _error("NOT_LEADER_OR_FOLLOWER"), BEFORE, (None, 0.05, 0.02)),
        (1, _error("NOT_ENOUGH_REPLICAS"), KAFKA, (None, None, 0.02)),
        (1, {"fault": {"api": "Produce", "action": "close"}}, KAFKA, (0.07, 0.07, 0.03)),
        (1, {"fault": {"api": "Produce", "action": "black-hole"}}, IMPATIENT, (None, 0.06, 0.08)),
    ],
    ids=[
        "killed-leader", "killed-leader-before-kip-580", "refused", "not-leader", "not-leader-before-kip-580",
        "retriable-error", "reset", "silent",
    ],
)  # fmt: skip
def test_attempts_of_a_model_are_those_of_the_client(
    brokers: int, step: dict[str, object], model: ClientModel, distances: tuple[float | None, ...]
) -> None:
    steps = [{"at": "10s", "during": "20s", **step}]
    scenario = scenario_of({"name": "test", "brokers": brokers, "duration": "40s", "steps": steps})
    groups = [Group("sluice", model, CLIENTS)]
    real = run_exact(groups, scenario, seed=1)
    traced: dict[str, list[Times]] = {kind: [] for kind in TRACED}
    simulate(groups, schedule_of(scenario), FAST, seed=1, trace=traced)
    found = {}
    for kind, limit in zip(TRACED, distances, strict=True):
        modelled = np.concatenate([np.empty(0, dtype=np.int64), *traced[kind]])
        found[kind] = _distance(_failing(real[kind]), _failing(modelled))
        if limit is not None:
            assert found[kind] <= limit, (kind, found)


def _failing(at_us: Times) -> Times:
    chosen: Times = np.sort(at_us[at_us >= FAILS_AT_US])
    return chosen


def _distance(one: Times, other: Times) -> float:
    """Return the Kolmogorov-Smirnov distance of two sorted samples."""
    if not len(one) or not len(other):
        return float(len(one) != len(other))
    both = np.concatenate((one, other))
    shares = (np.searchsorted(each, both, side="right") / len(each) for each in (one, other))
    return float(abs(np.subtract(*shares)).max())
