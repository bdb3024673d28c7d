"""The distances between the models of clients and the real clients, in real time against sluice."""

import asyncio
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from sluice.fleet.models.client_model import ClientModel
from sluice.fleet.models.presets import KAFKA, KAFKA_CONSUMER, LIBRDKAFKA
from sluice.fleet.simulation.arrays import US_PER_S, Times
from sluice.fleet.simulation.behaviour import TRACED

from .compare import FAILURES, FAST, Distance, compare
from .real_time import RealClients, run_real

_PRODUCER = {"linger.ms": "0", "acks": "all"}
# An idle broker on the same machine: a request takes a moment, so that the next one is sent before it fails.
_BROKER = replace(FAST, produce_us=1, metadata_us=1, connection_us=1, fetch_us=1, network_us=1)
# As in a long run: one connection, and metadata from a refresh by age, which comes just before the failure.
_JAVA = {"connections.max.idle.ms": "20000", "metadata.max.age.ms": "38000", "metadata.recovery.strategy": "none"}
# Of requests to a silent broker. No multiple of the period: the next record ends the poll that detects the timeout.
_TIMEOUT_MS = 3500
# A JVM takes longer for code that it runs for the first time, so a failure of 6 s precedes the scenario by 23 s.
# Metadata is then not refreshed by age, which would end the poll, and with it a request that has timed out.
_PRACTISED, _PRACTICE_FROM_S, _PRACTICE_S = ("silent", "refused"), 1, 6
_BURST_US = 300_000
_CLIENTS_AND_RUNS = 60, 1
# At the end of a silence all clients send at once, so few share a process. After refused connections, each requests
# metadata once, so that there are many.
_OF_FAILURES = {"silent": (20, 5), "refused": (100, 6)}


class Client(NamedTuple):
    command: str
    settings: Mapping[str, str]
    timeout: str  # the setting
    model: ClientModel
    warm_up_s: float

    @property
    def is_java(self) -> bool:
        return self.command.startswith("Java")


CLIENTS = {
    "java": Client("JavaClients", {**_PRODUCER, **_JAVA}, "request.timeout.ms", KAFKA, 30),
    "java-consumer": Client(
        "JavaConsumers", {**_JAVA, "metadata.max.age.ms": "300000"}, "request.timeout.ms", KAFKA_CONSUMER, 30
    ),
    "librdkafka": Client("confluent", _PRODUCER, "socket.timeout.ms", LIBRDKAFKA, 3),
}


def measure(name: str, failures: Sequence[str]) -> None:
    """Print a row for each failure and kind of attempt, of all runs together."""
    client = CLIENTS[name]
    for failure in failures:
        clients, runs = _OF_FAILURES.get(failure, _CLIENTS_AND_RUNS)
        settings, model = dict(client.settings), client.model
        if model.role == "consumer":
            model = replace(model, requests_per_s=0.001)  # the topics have no records
        if failure == "silent":
            settings |= {client.timeout: str(_TIMEOUT_MS)}
            settings |= {"request.timeout.ms": str(_TIMEOUT_MS)}
            model = replace(model, request_timeout_ms=_TIMEOUT_MS)
        scenario = FAILURES[failure].scenario
        practice = None
        if client.is_java and failure in _PRACTISED:
            settings |= {"metadata.max.age.ms": "300000"}
            practice = FAILURES[failure].during(_PRACTICE_FROM_S, _PRACTICE_S, 2 * _PRACTICE_S)
        group = RealClients(client.command, clients, settings)
        found = [
            asyncio.run(run_real([group], scenario, warm_up_s=client.warm_up_s, practice=practice, seed=seed))
            for seed in range(1, runs + 1)
        ]
        attempt_us = 0.0
        if practice is not None and failure == "silent" and model.role == "producer":  # consumers send one request each
            ends_us = (_PRACTICE_FROM_S + _PRACTICE_S - client.warm_up_s) * US_PER_S
            attempt_us = median(_attempt_us(one, ends_us) for one in found)
        real = {kind: np.sort(np.concatenate([one[kind] for one in found])) for kind in TRACED}
        distances = compare(
            real, clients * runs, model, FAILURES[failure], broker=_BROKER, attempt_us=attempt_us / runs
        )
        print(f"{name:11} {failure:23}", *(_text(kind, distances[kind]) for kind in TRACED), sep="  ", flush=True)


def _attempt_us(times: Mapping[str, Times], practice_us: float) -> float:
    """Return the time that an attempt takes a process of clients, by those that all make at the end of the practice."""
    at_us = np.concatenate(list(times.values()))
    burst = at_us[(at_us >= practice_us) & (at_us < practice_us + _BURST_US)]
    first, last = np.percentile(burst, (10, 90))
    return float(last - first) / (0.8 * len(burst))


def _text(kind: str, found: Distance) -> str:
    if not found.attempts and found.modelled < 1:
        return f"{kind}: none"
    return f"{kind}: {found.ks:.3f} ({found.coarse:.3f} in steps) of {found.attempts} (model {found.modelled:.0f})"
