"""The distances between the models of clients and the real clients, in real time against sluice."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sluice.fleet.models.client_model import ClientModel
from sluice.fleet.models.presets import KAFKA, KAFKA_CONSUMER, LIBRDKAFKA
from sluice.fleet.simulation.behaviour import TRACED

from .compare import FAILURES, Distance, compare
from .real_time import RealClients, run_real

_PRODUCER = {"linger.ms": "0", "acks": "all"}
# As in a long run: one connection, and metadata from a refresh by age. All clients refresh it just before the failure,
# because a refresh that is due ends the poll, and with it a request that has timed out.
_JAVA = {"connections.max.idle.ms": "20000", "metadata.max.age.ms": "38000", "metadata.recovery.strategy": "none"}
_JAVA_CONSUMER = {**_JAVA, "metadata.max.age.ms": "300000"}
# Of requests to a silent broker. No multiple of the period: the next record ends the poll that detects the timeout.
_TIMEOUT_MS = 3500


class Client(NamedTuple):
    command: str
    settings: Mapping[str, str]
    timeout: str  # the setting
    model: ClientModel
    warm_up_s: float


CLIENTS = {
    "java": Client("JavaClients", {**_PRODUCER, **_JAVA}, "request.timeout.ms", KAFKA, 30),
    "java-consumer": Client(
        "JavaConsumers", {**_JAVA, "metadata.max.age.ms": "300000"}, "request.timeout.ms", KAFKA_CONSUMER, 30
    ),
    "librdkafka": Client("confluent", _PRODUCER, "socket.timeout.ms", LIBRDKAFKA, 3),
}


def measure(name: str, failures: Sequence[str], clients: int) -> None:
    """Print a row for each failure and kind of attempt."""
    client = CLIENTS[name]
    for failure in failures:
        settings, model = dict(client.settings), client.model
        if model.role == "consumer":
            model = replace(model, requests_per_s=0.001)  # the topics have no records
        if failure == "silent":
            settings |= {client.timeout: str(_TIMEOUT_MS)}
            settings |= {"request.timeout.ms": str(_TIMEOUT_MS)}
            model = replace(model, request_timeout_ms=_TIMEOUT_MS)
        scenario = FAILURES[failure].scenario
        group = RealClients(client.command, clients, settings)
        real = asyncio.run(run_real([group], scenario, warm_up_s=client.warm_up_s))
        found = compare(real, clients, model, FAILURES[failure])
        print(f"{name:11} {failure:23}", *(_text(kind, found[kind]) for kind in TRACED), sep="  ", flush=True)


def _text(kind: str, found: Distance) -> str:
    if not found.attempts and found.modelled < 1:
        return f"{kind}: none"
    return f"{kind}: {found.ks:.3f} ({found.coarse:.3f} in steps) of {found.attempts} (model {found.modelled:.0f})"
