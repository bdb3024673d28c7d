"""The simulation's prediction for 300 real clients whose broker is away for 5, 20 and 60 s.

A fault rule limits the broker's capacity: its disk takes 1.5 ms for each Produce request. aiokafka waits for 1 s, not
100 ms, because 150 clients in one process do not connect 3,000 times per second. The comparison is valid if the clients
made as many connections during the outage as the model's.
"""

import asyncio
from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from sluice.broker.scenarios.files import scenario_of
from sluice.fleet.models.client_model import Group
from sluice.fleet.models.presets import AIOKAFKA, LIBRDKAFKA
from sluice.fleet.simulation.arrays import Times
from sluice.fleet.simulation.behaviour import TRACED
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.simulation.engine import simulate
from sluice.fleet.simulation.schedule import schedule_of

from .real_time import RealClients, run_real

_CLIENTS = 150  # of each kind
_KILLED_S, _OBSERVED_S = 10, 20
_BROKER = BrokerModel(produce_us=1500, metadata_us=100, connection_us=300, network_us=50)
_BACKOFF_MS = 1000
_REQUESTS = ("produce_requests", "metadata_requests")
_STEADY, _STEADY_S = 1.1, 5


def measure() -> None:
    for outage_s in (5, 20, 60):
        document = {
            "name": "prediction",
            "brokers": 1,
            "duration": f"{_KILLED_S + outage_s + _OBSERVED_S}s",
            "steps": [{"at": f"{_KILLED_S}s", "kill": 1, "during": f"{outage_s}s"}],
        }
        slow = {"at": "0s", "fault": {"api": "Produce", "action": {"kind": "slow-disk", "latency": "1.5ms"}}}
        real_scenario = scenario_of({**document, "steps": [slow, *document["steps"]]})  # type: ignore[misc]
        groups = [
            RealClients("aiokafka", _CLIENTS, {"retry_backoff_ms": str(_BACKOFF_MS)}),
            RealClients("confluent", _CLIENTS, {"linger.ms": "0", "max.in.flight.requests.per.connection": "1"}),
        ]
        real = asyncio.run(run_real(groups, real_scenario, warm_up_s=5))
        traced: dict[str, list[Times]] = {kind: [] for kind in TRACED}
        aiokafka = replace(AIOKAFKA, retry_backoff_ms=_BACKOFF_MS, retry_backoff_max_ms=_BACKOFF_MS)
        models = [Group("aiokafka", aiokafka, _CLIENTS), Group("librdkafka", LIBRDKAFKA, _CLIENTS)]
        simulate(models, schedule_of(scenario_of(document)), _BROKER, seed=1, trace=traced)
        modelled = {kind: np.concatenate([np.empty(0, dtype=np.int64), *traced[kind]]) for kind in TRACED}
        print(f"outage {outage_s} s: real {_text(real, outage_s)}; model {_text(modelled, outage_s)}", flush=True)


def _text(times: Mapping[str, Times], outage_s: int) -> str:
    """Return the most requests in a second, and the seconds from the end of the outage to the rate before."""
    end_s = _KILLED_S + outage_s + _OBSERVED_S
    at_s = np.concatenate([times[kind] for kind in _REQUESTS]) / 1e6
    rates = np.histogram(at_s, bins=np.arange(0, end_s + 0.5))[0]
    healed = _KILLED_S + outage_s
    steady = rates[2:_KILLED_S].mean()
    # A mean, because a stall of a second moves requests into the next.
    means = np.convolve(rates, np.full(_STEADY_S, 1 / _STEADY_S), mode="valid")
    recovered = next((s for s in range(healed + 1, len(means)) if means[s] <= steady * _STEADY), None)
    after = "never" if recovered is None else f"{recovered - healed} s"
    attempts = np.count_nonzero(times["connections"] < healed * 1e6) / outage_s
    peak = rates[_KILLED_S:].max()
    during = f"{attempts:.0f} connections/s in the outage"
    return f"{during}, peak {peak}/s, recovered after {after}, before {steady:.0f}/s"
