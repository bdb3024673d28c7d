"""Failures in which models are compared with clients, and the distance of their attempt times."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sluice.broker.scenarios.files import scenario_of
from sluice.broker.scenarios.model import Scenario
from sluice.fleet.models.client_model import ClientModel, Group
from sluice.fleet.simulation.arrays import Times
from sluice.fleet.simulation.behaviour import TRACED
from sluice.fleet.simulation.broker import BrokerModel, CpuQueue
from sluice.fleet.simulation.engine import simulate
from sluice.fleet.simulation.schedule import schedule_of

FAILS_AT_US = 10_000_000
_STEP_US = 20_000  # longer than the delays of a busy machine
# No time for requests, packets and closed connections, and no limit of connections, as in the exact simulation.
_NONE_US = 1e-12  # added to a time of the run, it is lost in rounding
FAST = BrokerModel(
    produce_us=_NONE_US,
    metadata_us=_NONE_US,
    connection_us=_NONE_US,
    fetch_us=_NONE_US,
    kilobyte_us=_NONE_US,
    network_us=_NONE_US,
    close_us=_NONE_US,
    backlog=65_535,
)


class Failure(NamedTuple):
    """A failure from 10 s to 30 s of 40 s."""

    brokers: int
    step: Mapping[str, object]

    @property
    def scenario(self) -> Scenario:
        return self.during(10, 20, 40)

    def during(self, from_s: int, for_s: int, duration_s: int) -> Scenario:
        steps = [{"at": f"{from_s}s", "during": f"{for_s}s", **self.step}]
        return scenario_of({"name": "test", "brokers": self.brokers, "duration": f"{duration_s}s", "steps": steps})


def _fault(action: object) -> dict[str, object]:
    return {"fault": {"api": ["Produce", "Fetch"], "action": action}}


FAILURES = {
    "killed leader": Failure(3, {"kill": 1}),
    "refused": Failure(1, {"kill": 1}),
    "reset": Failure(1, _fault("close")),
    "silent": Failure(1, _fault("black-hole")),
    "NOT_LEADER_OR_FOLLOWER": Failure(1, _fault({"kind": "error", "code": "NOT_LEADER_OR_FOLLOWER"})),
    "NOT_ENOUGH_REPLICAS": Failure(
        1, {"fault": {"api": "Produce", "action": {"kind": "error", "code": "NOT_ENOUGH_REPLICAS"}}}
    ),
}


class Distance(NamedTuple):
    ks: float  # Kolmogorov-Smirnov: the largest difference of the two distributions; 0 if there are no attempts
    coarse: float  # the same for times rounded down to 20 ms, for attempts that the model makes at the same instant
    attempts: int
    modelled: float  # attempts of the model, for the same number of clients


def compare(
    real: Mapping[str, Times],
    clients: int,
    model: ClientModel,
    failure: Failure,
    scale: int = 10,
    broker: BrokerModel = FAST,
    attempt_us: float = 0.0,
) -> dict[str, Distance]:
    """Return the distance of all attempts from the failure on, by kind, to those of `scale` times as many clients.

    The real clients share a process, which takes `attempt_us` for each attempt.
    """
    traced: dict[str, list[Times]] = {kind: [] for kind in TRACED}
    groups = [Group("model", model, clients * scale)]
    simulate(groups, schedule_of(failure.scenario), broker, seed=1, trace=traced)
    due = {kind: np.concatenate([np.empty(0, dtype=np.int64), *traced[kind]]) for kind in TRACED}
    process = CpuQueue()
    everything = np.concatenate(list(due.values()))
    made = process.serve(everything, np.full(len(everything), attempt_us / scale))
    ends = np.cumsum([len(due[kind]) for kind in TRACED])
    found = {}
    for kind, end in zip(TRACED, ends, strict=True):
        modelled = _failing(made[end - len(due[kind]) : end])
        ours = _failing(real[kind])
        coarse = distance(ours // _STEP_US, modelled // _STEP_US)
        found[kind] = Distance(distance(ours, modelled), coarse, len(ours), len(modelled) / scale)
    return found


def _failing(at_us: Times) -> Times:
    chosen: Times = np.sort(at_us[at_us >= FAILS_AT_US])
    return chosen


def distance(one: Times, other: Times) -> float:
    """Return the Kolmogorov-Smirnov distance of two sorted samples."""
    if not len(one) or not len(other):
        return float(len(one) != len(other))
    both = np.concatenate((one, other))
    shares = (np.searchsorted(each, both, side="right") / len(each) for each in (one, other))
    return float(abs(np.subtract(*shares)).max())
