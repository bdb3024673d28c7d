"""The models of clients make their attempts when the clients do: the vectorised simulation against the exact one.

The Kolmogorov-Smirnov distance is the largest difference between two distributions, here of the times of all attempts
from the failure on. 95 % of samples are within 0.04 of their distribution for 1,000 attempts, and within 0.08 for 300.
Without a limit: kinds of few attempts.
"""

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from msgspec.structs import replace

from sluice.fleet.models.client_model import ClientModel, Group
from sluice.fleet.models.presets import AIOKAFKA, AIOKAFKA_CONSUMER, SLUICE_CONSUMER
from sluice.fleet.simulation.behaviour import TRACED
from tools.fleets.compare import FAILURES, compare
from tools.fleets.exact.run import run_exact
from tools.fleets.exact_attempts import attempts

CLIENTS = 60
# As in a long run, the last metadata before the failure came from a refresh by age, at any time. Sluice's clients start
# within 25 s, and refresh 25, 30 (their first connection is closed) and 55 s later.
LONG_RUN = {"warm_up_s": 75.0, "spread_s": 25.0}
# With one request in flight, a producer needs no InitProducerId and no connection for it.
KAFKA = ClientModel(metadata_max_age_ms=25_000, max_in_flight_requests_per_connection=1)
# Brokers do not record the requests that wait in a silent connection.
# A batch of the exact simulation's producers has room for more than 1,000 of their records.
PIPELINED = replace(KAFKA, max_in_flight_requests_per_connection=5, requests_per_s=5, records_per_request=1000)
BEFORE = replace(KAFKA, retry_backoff_max_ms=100, reconnect_backoff_max_ms=50)


def slow(client: str, model: ClientModel, failure: str, distances: tuple[float | None, ...]) -> ParameterSet:
    """Return a case that the campaign `fleet-models` runs: each takes seconds; others show most of what it shows."""
    return pytest.param(client, model, failure, distances, marks=pytest.mark.many_clients)


@pytest.mark.parametrize(
    ("client", "model", "failure", "distances"),
    [
        ("sluice", KAFKA, "killed leader", (0.06, 0.1, 0.02)),
        slow("sluice", BEFORE, "killed leader", (0.02, 0.03, 0.02)),
        slow("sluice", KAFKA, "refused", (0.02, 0.11, 0.02)),
        slow("sluice", KAFKA, "NOT_LEADER_OR_FOLLOWER", (None, 0.02, 0.01)),
        slow("sluice", BEFORE, "NOT_LEADER_OR_FOLLOWER", (None, 0.01, 0.01)),
        ("sluice", KAFKA, "NOT_ENOUGH_REPLICAS", (None, None, 0.01)),
        slow("sluice", KAFKA, "reset", (0.02, 0.02, 0.01)),
        slow("sluice", KAFKA, "silent", (0.03, 0.03, 0.01)),
        slow("sluice", PIPELINED, "killed leader", (0.05, None, 0.03)),
        slow("sluice", PIPELINED, "refused", (0.02, None, 0.01)),
        slow("sluice", PIPELINED, "NOT_LEADER_OR_FOLLOWER", (None, 0.02, 0.01)),
        slow("sluice", PIPELINED, "reset", (0.02, 0.02, 0.02)),
        ("aiokafka", AIOKAFKA, "killed leader", (0.03, 0.03, 0.02)),
        slow("aiokafka", AIOKAFKA, "refused", (0.01, None, 0.05)),
        slow("aiokafka", AIOKAFKA, "NOT_LEADER_OR_FOLLOWER", (None, 0.01, 0.01)),
        slow("aiokafka", AIOKAFKA, "reset", (0.01, 0.01, 0.01)),
        ("aiokafka", AIOKAFKA, "silent", (0.03, 0.03, 0.01)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_attempts_of_a_model_are_those_of_the_client(
    client: str, model: ClientModel, failure: str, distances: tuple[float | None, ...]
) -> None:
    if failure == "silent":
        limit_ms = 3000 if client == "aiokafka" else model.delivery_timeout_ms
        model = replace(model, request_timeout_ms=3000, delivery_timeout_ms=limit_ms)
    clients = 15 if client == "aiokafka" else CLIENTS
    start = {} if client == "aiokafka" or failure == "killed leader" else LONG_RUN
    real = attempts(client, model, clients, failure, **start)
    found = compare(real, clients, model, FAILURES[failure])
    for kind, limit in zip(TRACED, distances, strict=False):
        if limit is not None:
            assert found[kind].ks <= limit, (kind, found)
            assert found[kind].modelled == pytest.approx(found[kind].attempts, rel=0.05), (kind, found)


@pytest.mark.many_clients
def test_attempts_after_a_long_run_are_those_of_the_client() -> None:
    """The model has 7 % fewer connections.

    While a leader waits for the killed replica, clients with old metadata connect to another broker for new metadata.
    """
    real = run_exact([Group("sluice", KAFKA, CLIENTS)], FAILURES["killed leader"].scenario, seed=1, **LONG_RUN)
    found = compare(real, CLIENTS, KAFKA, FAILURES["killed leader"])
    for kind, limit in zip(TRACED, (0.04, 0.04, 0.01), strict=False):
        assert found[kind].ks <= limit, (kind, found)


@pytest.mark.parametrize(
    ("client", "model", "failure", "distances"),
    [
        slow("sluice-consumer", SLUICE_CONSUMER, "killed leader", (0.05, 0.05, None, 0.01, 0.03, 0.06)),
        slow("sluice-consumer", SLUICE_CONSUMER, "refused", (0.04, None, None, 0.02, 0.06, 0.12)),
        slow("sluice-consumer", SLUICE_CONSUMER, "reset", (0.01, 0.02, None, 0.01, 0.03, None)),
        slow("sluice-consumer", SLUICE_CONSUMER, "silent", (0.03, 0.04, None, 0.01, 0.03, None)),
        slow("sluice-consumer", SLUICE_CONSUMER, "NOT_LEADER_OR_FOLLOWER", (None, 0.02, None, 0.01, 0.03, None)),
        slow("aiokafka-consumer", AIOKAFKA_CONSUMER, "killed leader", (0.03, 0.05, None, 0.01, 0.05, 0.12)),
        slow("aiokafka-consumer", AIOKAFKA_CONSUMER, "reset", (0.01, 0.01, None, 0.01, 0.03, None)),
        ("aiokafka-consumer", AIOKAFKA_CONSUMER, "silent", (0.03, 0.03, None, 0.01, 0.03, None)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_attempts_of_a_consumer_are_those_of_the_client(
    client: str, model: ClientModel, failure: str, distances: tuple[float | None, ...]
) -> None:
    """The consumers of the exact simulation have no records, and random phases of heartbeats."""
    clients, start = (15, {}) if client.startswith("aiokafka") else (CLIENTS, LONG_RUN)
    model = replace(model, requests_per_s=0.001, metadata_max_age_ms=25_000 if start else 300_000)
    if failure == "silent":
        model = replace(model, request_timeout_ms=3000)
    real = attempts(client, model, clients, failure, **start)
    found = compare(real, clients, model, FAILURES[failure])
    for kind, limit in zip(TRACED, distances, strict=True):
        if limit is not None:
            assert found[kind].ks <= limit, (kind, found)
    fetches, lookups = found["fetch_requests"], found["coordinator_lookups"]
    assert fetches.modelled == pytest.approx(fetches.attempts, rel=0.03)
    assert lookups.modelled == pytest.approx(lookups.attempts, rel=0.25 if client.startswith("aiokafka") else 0.2)


@pytest.mark.many_clients
@pytest.mark.parametrize(
    ("client", "model", "start", "limits"),
    [
        ("sluice", KAFKA, LONG_RUN, {"connections": 0.01, "metadata_requests": 0.05, "produce_requests": 0.01}),
        (
            "sluice-consumer",
            replace(SLUICE_CONSUMER, requests_per_s=0.001),
            {},
            {"connections": 0.04, "metadata_requests": 0.05, "fetch_requests": 0.02, "coordinator_lookups": 0.05},
        ),
    ],
    ids=["producers", "consumers"],
)
def test_each_of_many_clients_requests_metadata_once_after_refused_connections(
    client: str, model: ClientModel, start: dict[str, float], limits: dict[str, float]
) -> None:
    """With a request for each client, 60 clients have a distance of 0.17 by chance, and 600 have 0.06."""
    group, failure = Group(client, model, 200), FAILURES["refused"]
    runs = [run_exact([group], failure.scenario, seed=seed, **start) for seed in (1, 2, 3)]
    pooled = {kind: np.sort(np.concatenate([run[kind] for run in runs])) for kind in TRACED}
    found = compare(pooled, 600, model, failure)
    assert found["metadata_requests"].attempts == found["metadata_requests"].modelled == 600
    for kind, limit in limits.items():
        assert found[kind].ks <= limit, (kind, found)
