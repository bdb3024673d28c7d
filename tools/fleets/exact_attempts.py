"""The attempts of clients in the exact simulation, the same in each process."""

import json
from collections.abc import Mapping
from subprocess import Popen

import msgspec
import numpy as np

from sluice.fleet.models.client_model import ClientModel, Group
from sluice.fleet.simulation.arrays import Times
from tests.support import fixed_hashes
from tools.fleets.compare import FAILURES
from tools.fleets.exact.run import run_exact


def attempts(client: str, model: ClientModel, clients: int, failure: str, **start: float) -> Mapping[str, Times]:
    """Return the times of a failure by kind; `start` has arguments of run_exact, for clients but aiokafka's."""
    if not client.startswith("aiokafka"):
        return run_exact([Group(client, model, clients)], FAILURES[failure].scenario, seed=1, **start)
    times = json.loads(start_attempts(client, model, clients, failure).communicate()[0])
    return {kind: np.array(each, dtype=np.int64) for kind, each in times.items()}


def start_attempts(client: str, model: ClientModel, clients: int, failure: str) -> Popen[str]:
    """Start a process that prints the times of a failure by kind, as JSON."""
    call = f"attempts_as_json({client!r}, {msgspec.json.encode(model)!r}, {clients}, {failure!r})"
    return fixed_hashes.start(__name__, call)


def attempts_as_json(client: str, model: bytes, clients: int, failure: str) -> str:
    group = Group(client, msgspec.json.decode(model, type=ClientModel), clients)
    found = run_exact([group], FAILURES[failure].scenario, seed=1)
    return json.dumps({kind: times.tolist() for kind, times in found.items()})
