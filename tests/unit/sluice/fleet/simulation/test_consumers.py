"""Tests of simulated consumers: long polls, heartbeats, failures and lag."""

import numpy as np
import pytest
from msgspec.structs import replace

from sluice.errors import SluiceError
from sluice.fleet.models.client_model import ClientModel, Group
from sluice.fleet.models.presets import AIOKAFKA_CONSUMER, KAFKA_CONSUMER, SLUICE_CONSUMER
from sluice.fleet.run import ensure_possible
from sluice.fleet.simulation.arrays import Times
from sluice.fleet.simulation.behaviour import TRACED
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.simulation.counters import Count
from sluice.fleet.simulation.engine import Simulation, simulate
from tests.support.fleet_simulation import FAST, schedule_with

_FAST = replace(FAST, fetch_us=1, backlog=100)
_KILL: dict[str, object] = {"at": "5s", "kill": 1, "during": "12s"}  # longer than aiokafka's session timeout of 10 s
_CLIENTS, _SECONDS = 30, 40


def _run(
    *steps: dict[str, object],
    model: ClientModel = KAFKA_CONSUMER,
    brokers: int = 3,
    seed: int = 1,
    broker: BrokerModel = _FAST,
) -> Simulation:
    schedule = schedule_with(*steps, brokers=brokers, duration=f"{_SECONDS}s")
    return simulate([Group("c", model, _CLIENTS)], schedule, broker, seed=seed)


@pytest.fixture(scope="module")
def killed() -> Simulation:
    return _run(_KILL)


def _rate(run: Simulation, kind: int, from_s: int = 5) -> float:
    """Return the mean per client and second."""
    return float(run.counts[from_s * 10 :, kind].sum()) / _CLIENTS / (_SECONDS - from_s)


FETCHES = {
    "an idle fetch waits for fetch.max.wait.ms": ({"requests_per_s": 0.001}, 2, None),
    "a shorter wait": ({"requests_per_s": 0.001, "fetch_max_wait_ms": 100}, 10, None),
    "each record ends a fetch": ({"requests_per_s": 20}, 20, 0),
    "five records end a fetch of fetch.min.bytes, after 200, 150, ... 0 ms": (
        {"requests_per_s": 20, "fetch_min_bytes": 500},
        4,
        100,
    ),
    "the wait ends a fetch before its bytes are there": (
        {"requests_per_s": 20, "fetch_min_bytes": 5000, "fetch_max_wait_ms": 1000},
        1,
        475,
    ),
}


@pytest.mark.parametrize(("changes", "fetches", "latency_ms"), FETCHES.values(), ids=FETCHES)
def test_a_fetch_returns_its_bytes_or_after_its_wait(
    changes: dict[str, float], fetches: float, latency_ms: float | None
) -> None:
    run = _run(model=replace(KAFKA_CONSUMER, **changes))
    assert _rate(run, Count.FETCH_REQUESTS) == pytest.approx(fetches, rel=0.03)
    assert _rate(run, Count.HEARTBEATS) == pytest.approx(1 / 3, rel=0.02)
    assert not run.counts[:, [Count.CONNECTIONS, Count.ERRORS, Count.COORDINATOR_LOOKUPS, Count.PRODUCE_REQUESTS]].any()
    if latency_ms is not None:
        assert _rate(run, Count.FETCHED) == pytest.approx(changes["requests_per_s"], rel=0.05)
        counts = run.counts[50:]
        found_ms = counts[:, Count.LATENCY_US].sum() / counts[:, Count.COMPLETED].sum() / 1000
        assert found_ms == pytest.approx(latency_ms, abs=1 + latency_ms * 0.06)


def test_a_consumer_without_a_group_sends_no_heartbeats() -> None:
    run = _run(_KILL, model=replace(KAFKA_CONSUMER, group_member=False))
    assert not run.counts[:, [Count.HEARTBEATS, Count.COORDINATOR_LOOKUPS]].any()
    assert run.counts[:, Count.FETCHED].sum() > 0


MODELS = {"Kafka": KAFKA_CONSUMER, "ours": SLUICE_CONSUMER, "aiokafka": AIOKAFKA_CONSUMER}


@pytest.mark.parametrize("loop", ["open", "closed"])
@pytest.mark.parametrize("brokers", [1, 3])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_all_records_are_received_after_a_failure(model: ClientModel, brokers: int, loop: str) -> None:
    run = _run(_KILL, model=replace(model, loop=loop), brokers=brokers)
    received = int(run.counts[:, Count.FETCHED].sum())
    if loop == "open":
        assert received == pytest.approx(_CLIENTS * _SECONDS, abs=_CLIENTS)
        lag = run.counts[9::10, Count.LAG]
        assert lag[3] == 0
        assert lag.max() > _CLIENTS * 2  # at least a third of the clients, for nine seconds
        assert lag[-5] <= _CLIENTS  # those of a record and a second
    steady = run.counts[300:, Count.FETCHED].sum() / 10 / _CLIENTS
    assert steady == pytest.approx(1, abs=0.05)
    assert run.counts[300:, Count.HEARTBEATS].sum() == pytest.approx(_CLIENTS * 10 / 3, rel=0.2)
    assert bool(run.counts[:, Count.SESSION_TIMEOUTS].any()) == (brokers == 1 and model is AIOKAFKA_CONSUMER)


def test_consumers_of_other_leaders_wait_until_the_killed_replica_is_out_of_sync(killed: Simulation) -> None:
    assert killed.counts[60:139, Count.FETCHED].sum() == 0
    assert killed.counts[140:150, Count.FETCHED].sum() > _CLIENTS * 8


def test_a_moved_leader_ends_a_fetch_that_waits() -> None:
    topics = [{"name": "orders", "assignments": [[1, 2]]}]
    move: dict[str, object] = {"at": "10.05s", "move_leader": {"topic": "orders", "partition": 0, "to": 2}}
    schedule = schedule_with(move, brokers=2, duration="30s", topics=topics)
    model = replace(KAFKA_CONSUMER, requests_per_s=0.001, fetch_max_wait_ms=5000)
    run = simulate([Group("c", model, _CLIENTS)], schedule, _FAST, seed=1)
    assert run.counts[:, Count.ERRORS].nonzero()[0].tolist() == [100]
    assert run.counts[100, Count.ERRORS] == _CLIENTS
    assert run.counts[100, Count.FETCH_REQUESTS] == pytest.approx(_CLIENTS, abs=3)  # others began in the same 100 ms


def test_kafkas_consumer_fetches_again_at_once_and_ours_after_new_metadata() -> None:
    fault = {"api": "Fetch", "action": {"kind": "error", "code": "NOT_LEADER_OR_FOLLOWER"}}
    step: dict[str, object] = {"at": "1s", "fault": fault, "during": "3s"}
    far = replace(FAST, fetch_us=1, network_us=5000)
    kafka, ours = (_run(step, model=model, broker=far) for model in (KAFKA_CONSUMER, SLUICE_CONSUMER))
    # A round trip takes 10 ms. Metadata without news has the retry backoff, up to a second.
    assert kafka.counts[20:40, Count.ERRORS].sum() == pytest.approx(_CLIENTS * 200, rel=0.05)
    requested = ours.counts[20:40, Count.METADATA_REQUESTS].sum()
    assert ours.counts[20:40, Count.ERRORS].sum() == pytest.approx(requested, rel=0.02)  # bins divide some pairs
    assert ours.counts[20:40, Count.ERRORS].sum() < _CLIENTS * 6


SILENT_FETCHES = {
    "polls of 1 s": ({}, 4),
    "polls of 0.5 s": ({"poll_timeout_ms": 500}, 3.5),
    "heartbeats end polls": ({"poll_timeout_ms": 1e6, "heartbeat_interval_ms": 5000}, 5),
    "checked when it is due": ({"request_timeout_restarts": False}, 3.05),
}


@pytest.mark.parametrize(("changes", "period_s"), SILENT_FETCHES.values(), ids=SILENT_FETCHES)
def test_a_silent_fetch_times_out_when_a_poll_ends(changes: dict[str, float], period_s: float) -> None:
    model = replace(KAFKA_CONSUMER, request_timeout_ms=3000, **{"heartbeat_interval_ms": 1e6, **changes})
    fault = {"api": "Fetch", "action": "black-hole"}
    schedule = schedule_with({"at": "10s", "fault": fault})
    run = simulate([Group("c", model, 1)], schedule, _FAST, seed=1)
    failed_s = np.flatnonzero(run.counts[:, Count.REQUEST_TIMEOUTS]) / 10
    assert len(failed_s) > 8
    assert np.diff(failed_s).tolist() == pytest.approx([period_s] * (len(failed_s) - 1), abs=0.11)


def test_a_silent_fetch_waits_for_records_from_the_end_of_the_silence_on() -> None:
    fault = {"api": "Fetch", "action": "black-hole"}
    model = replace(SLUICE_CONSUMER, requests_per_s=0.001)
    run = _run({"at": "5s", "fault": fault, "during": "3s"}, model=model)
    fetches = run.counts[:, Count.FETCH_REQUESTS]
    assert fetches[55:84].sum() == 0
    assert fetches[84:86].sum() == _CLIENTS


def test_kafkas_consumer_reconnects_when_it_polls() -> None:
    step: dict[str, object] = {"at": "10s", "fault": {"api": "Fetch", "action": "close"}, "during": "5s"}
    kafka, ours = (_run(step, model=model, brokers=1) for model in (KAFKA_CONSUMER, SLUICE_CONSUMER))
    assert ours.counts[:, Count.CONNECTIONS].sum() == pytest.approx(_CLIENTS * 5 / 0.05, rel=0.05)
    assert kafka.counts[:, Count.CONNECTIONS].sum() == pytest.approx(_CLIENTS * 5 / 0.1, rel=0.1)


def test_a_lost_coordinator_is_looked_up_and_replaced() -> None:
    fault = {"api": "Heartbeat", "action": {"kind": "error", "code": "NOT_COORDINATOR"}}
    run = _run({"at": "10s", "fault": fault, "during": "3s"})
    assert run.counts[:, Count.ERRORS].sum() >= _CLIENTS
    assert run.counts[:, Count.COORDINATOR_LOOKUPS].sum() >= run.counts[:, Count.ERRORS].sum()
    assert run.counts[220:, Count.HEARTBEATS].sum() == pytest.approx(_CLIENTS * 18 / 3, rel=0.03)


def test_metadata_does_not_wait_for_the_response_to_a_fetch() -> None:
    """It is sent when both backoffs, of at most a second, have ended. A Fetch may be in flight, for half a second."""
    trace: dict[str, list[Times]] = {kind: [] for kind in TRACED}
    model = replace(SLUICE_CONSUMER, requests_per_s=0.001, metadata_max_age_ms=1e9)
    schedule = schedule_with({"at": "5s", "kill": 1, "during": "20s"}, brokers=1, duration="40s")
    simulate([Group("c", model, 200)], schedule, _FAST, seed=1, trace=trace)
    at_us = np.concatenate(trace["metadata_requests"])
    assert len(at_us) == 200
    assert 25_000_000 < at_us.min() < at_us.max() < 26_000_000


def test_a_lookup_waits_for_the_fetch_on_its_connection() -> None:
    model = replace(SLUICE_CONSUMER, requests_per_s=0.001)
    runs = [_run(_KILL, model=replace(model, fetch_max_wait_ms=wait_ms)) for wait_ms in (10, 500, 2000)]
    lookups = [int(run.counts[:, Count.COORDINATOR_LOOKUPS].sum()) for run in runs]
    assert lookups[0] > lookups[1] > lookups[2]


def test_the_same_seed_gives_the_same_counts(killed: Simulation) -> None:
    assert (killed.counts == _run(_KILL).counts).all()
    assert (killed.counts != _run(_KILL, seed=2).counts).any()


@pytest.mark.parametrize(("api", "model"), [("Fetch", ClientModel()), ("Produce", KAFKA_CONSUMER)])
def test_a_fault_of_requests_that_the_fleet_does_not_send_is_refused(api: str, model: ClientModel) -> None:
    schedule = schedule_with({"at": "1s", "fault": {"api": api, "action": "close"}}, duration="9s")
    with pytest.raises(SluiceError, match=rf"test: fault.api: expected requests of the fleet \(ApiVersions.*got {api}"):
        ensure_possible([Group("a", model, 1)], schedule, 1)
