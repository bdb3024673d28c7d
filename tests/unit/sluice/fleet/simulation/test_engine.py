"""Tests of the vectorised simulation: determinism, conservation, and cases that can be calculated by hand."""

import numpy as np
import pytest

from sluice.fleet.models.client_model import ClientModel, Group
from sluice.fleet.models.presets import LIBRDKAFKA
from sluice.fleet.simulation import engine
from sluice.fleet.simulation.arrays import Times
from sluice.fleet.simulation.behaviour import TRACED
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.simulation.counters import Count
from sluice.fleet.simulation.engine import Simulation, simulate
from tests.support.fleet_simulation import FAST, schedule_with

_KILL = {"at": "10s", "kill": 1, "during": "20s"}


def _run(
    *steps: dict[str, object],
    model: ClientModel | None = None,
    clients: int = 60,
    brokers: int = 3,
    broker: BrokerModel = FAST,
    seed: int = 1,
    cold: bool = False,
    seconds: int = 40,
) -> Simulation:
    schedule = schedule_with(*steps, brokers=brokers, duration=f"{seconds}s")
    return simulate([Group("test", model or ClientModel(), clients)], schedule, broker, seed=seed, cold=cold)


@pytest.fixture(scope="module")
def killed() -> Simulation:
    return _run(_KILL)


def _total(run: Simulation, kind: int) -> int:
    return int(run.counts[:, kind].sum())


def test_a_healthy_fleet_sends_at_its_rate() -> None:
    run = _run(model=ClientModel(requests_per_s=2), seconds=60)
    assert _total(run, Count.PRODUCE_REQUESTS) == _total(run, Count.COMPLETED) == 60 * 60 * 2
    assert not run.counts[
        :, [Count.CONNECTIONS, Count.PRODUCE_RETRIES, Count.EXPIRED, Count.DISCONNECTS, Count.ERRORS]
    ].any()
    # Each client refreshes its metadata every five minutes.
    assert _total(run, Count.METADATA_REQUESTS) == pytest.approx(60 / 5, abs=8)


def test_the_same_seed_gives_the_same_counts_and_another_does_not(killed: Simulation) -> None:
    assert (killed.counts == _run(_KILL).counts).all()
    assert (killed.counts != _run(_KILL, seed=2).counts).any()


@pytest.mark.parametrize("events", [16, 100_000])
def test_windows_do_not_change_times_that_depend_on_no_queue(
    events: int, killed: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_EVENTS_PER_WINDOW", events)
    kinds = [Count.CONNECTIONS, Count.METADATA_REQUESTS]
    assert abs(killed.counts[:, kinds] - _run(_KILL).counts[:, kinds]).sum() <= 2


@pytest.mark.parametrize("loop", ["open", "closed"])
@pytest.mark.parametrize("kind", ["kill", "stop"])
@pytest.mark.parametrize("brokers", [1, 3])
def test_no_operation_is_lost_or_completed_twice(brokers: int, kind: str, loop: str) -> None:
    model = ClientModel(loop=loop, delivery_timeout_ms=5000, request_timeout_ms=3000)  # type: ignore[arg-type]
    run = _run({"at": "5s", kind: 1, "during": "15s"}, model=model, brokers=brokers)
    ended = _total(run, Count.COMPLETED) + _total(run, Count.EXPIRED)
    if loop == "open":
        # Each client created 40 operations, the last of which may be under way.
        assert 60 * 39 <= ended <= 60 * 40
    assert bool(_total(run, Count.EXPIRED)) == (brokers == 1 or kind == "kill")
    steady = run.counts[300:, Count.COMPLETED].sum() / 10
    assert steady == pytest.approx(60, abs=1)


def test_a_single_client_backs_off_as_kafka_does() -> None:
    model = ClientModel(reconnect_backoff_jitter=0, retry_backoff_jitter=0, retry_backoff_redraws=False)
    run = _run({"at": "10s", "kill": 1, "during": "20s"}, model=model, clients=1, brokers=1)
    (bins,) = np.nonzero(run.counts[:, Count.CONNECTIONS])
    # 50, 100, 200, 400 and 800 ms after one another, then each second.
    assert (bins / 10).tolist() == [10.0, 10.1, 10.3, 10.7, 11.5, *(12.5 + second for second in range(18)), 30.5]


@pytest.mark.parametrize("in_steps", [True, False])
def test_an_idle_client_connects_for_metadata_in_steps_of_the_reconnect_backoff(in_steps: bool) -> None:
    model = ClientModel(requests_per_s=0.001, reconnect_backoff_in_steps=in_steps)
    connections: list[Times] = []
    trace = {kind: connections if kind == "connections" else [] for kind in TRACED}
    schedule = schedule_with({"at": "10s", "kill": 1}, duration="11s")
    simulate([Group("test", model, 60)], schedule, FAST, seed=1, trace=trace)
    waits_ms = (np.concatenate(connections) - 10_000_001) // 1000
    first_ms = set(waits_ms[waits_ms <= 100].tolist())  # the second follows after 40 + 80 ms, or later
    assert first_ms == {50, 100} if in_steps else first_ms <= set(range(40, 61))


def test_due_metadata_is_requested_between_produce_requests() -> None:
    run = _run({"at": "10s", "kill": 1, "during": "20s"}, model=ClientModel(metadata_max_age_ms=1e9), brokers=1)
    # After the last failed connection, both backoffs are at most 1 s.
    assert run.counts[300:310, Count.METADATA_REQUESTS].sum() == _total(run, Count.METADATA_REQUESTS) == 60


def test_closed_loops_stop_sending_while_they_wait() -> None:
    step = {"at": "10s", "kill": 1, "during": "20s"}
    open_loop, closed_loop = (_run(step, model=ClientModel(loop=loop), brokers=1) for loop in ("open", "closed"))
    assert _total(open_loop, Count.COMPLETED) == pytest.approx(60 * 40, abs=60)
    assert _total(closed_loop, Count.COMPLETED) == pytest.approx(60 * 19, abs=120)


def test_requests_of_a_broker_without_capacity_time_out() -> None:
    model = ClientModel(request_timeout_ms=1000, delivery_timeout_ms=20_000)
    slow = BrokerModel(produce_us=100_000, metadata_us=100, connection_us=100)  # 20 clients take 2 s
    run = _run(model=model, broker=slow, seconds=25)
    assert _total(run, Count.REQUEST_TIMEOUTS) > 100
    assert _total(run, Count.EXPIRED) > 0


RESTARTS = {
    "checked when it is due": (False, "open", 1, 3.0),
    "restarted by the next record": (True, "open", 1, 3.4),
    "restarted by the fifth record, which waits": (True, "open", 5, 5.0),
    "ended by a record that is sent": (True, "open", 9, 3.2),
    "without a next record": (True, "closed", 5, 3.0),
}


@pytest.mark.parametrize(("restarts", "loop", "in_flight", "waits_s"), RESTARTS.values(), ids=RESTARTS)
def test_a_record_that_begins_a_batch_restarts_the_first_request_timeout(
    restarts: bool, loop: str, in_flight: int, waits_s: float
) -> None:
    model = ClientModel(
        request_timeout_ms=3000,
        request_timeout_restarts=restarts,
        max_in_flight_requests_per_connection=in_flight,
        requests_per_s=2.5,
        loop=loop,  # type: ignore[arg-type]
    )
    step: dict[str, object] = {"at": "10s", "fault": {"api": "Produce", "action": "black-hole"}}
    run = _run(step, model=model, clients=1, brokers=1)
    failed_s = np.flatnonzero(run.counts[:, Count.REQUEST_TIMEOUTS]) / 10
    sent_s = 10 + np.flatnonzero(run.counts[100:, Count.PRODUCE_REQUESTS])[0] / 10
    assert failed_s[0] - sent_s == pytest.approx(waits_s, abs=0.11)
    assert 3 <= failed_s[1] - failed_s[0] <= 3.4, "a batch waits already, so that no record begins another"


def test_librdkafka_connects_to_its_bootstrap_server_before_the_leader() -> None:
    run = _run({"at": "10s", "kill": 1, "during": "20s"}, model=LIBRDKAFKA, clients=1, brokers=1)
    connections, metadata, produced = (
        np.flatnonzero(run.counts[100:, kind]) / 10
        for kind in (Count.CONNECTIONS, Count.METADATA_REQUESTS, Count.PRODUCE_REQUESTS)
    )
    assert _total(run, Count.CONNECTIONS) == 42  # two in each second of the outage, and two after it
    bootstrap_s, leader_s = connections[-2:]
    assert 20 <= bootstrap_s <= 21
    assert metadata.tolist() == [leader_s] == [bootstrap_s + 1]
    assert produced[0] == leader_s


def test_cold_clients_connect_before_they_send() -> None:
    run = _run(cold=True)
    # Each to a random broker for metadata, and to the leader of its partition if that is another one.
    assert _total(run, Count.CONNECTIONS) == pytest.approx(60 * (1 + 2 / 3), abs=15)
    assert _total(run, Count.METADATA_REQUESTS) >= 60


SCHEDULES = {
    "times": ({"times": 5}, 5),
    "on": ({"on": [1, 4]}, 2),
    "schedule": ({"schedule": "3 fail, 2 pass, 4 fail"}, 7),
}


@pytest.mark.parametrize(("schedule", "errors"), SCHEDULES.values(), ids=SCHEDULES)
def test_schedule_of_a_rule_counts_the_requests_that_match(schedule: dict[str, object], errors: int) -> None:
    action = {"kind": "error", "code": "NOT_ENOUGH_REPLICAS"}
    run = _run({"at": "10s", "fault": {"api": "Produce", "action": action, **schedule}}, seconds=15)
    assert _total(run, Count.ERRORS) == _total(run, Count.PRODUCE_RETRIES) == errors


def test_rule_with_a_partition_hits_its_clients_alone() -> None:
    action = {"kind": "error", "code": "NOT_ENOUGH_REPLICAS"}
    run = _run({"at": "10s", "fault": {"api": "Produce", "partition": [0, 3], "action": action}}, seconds=30)
    completed = run.counts[110:, Count.COMPLETED].sum()  # bins of 100 ms, from a second after the rule on
    assert completed == pytest.approx(60 * 19 * 4 / 6, abs=60)  # two of six partitions fail


def test_random_delays_are_within_their_bounds() -> None:
    fault = {"api": "Produce", "action": {"kind": "delay", "min": 100, "max": 300}}
    counts = _run({"at": "10s", "fault": fault}).counts[110:]
    assert counts[:, Count.LATENCY_US].sum() / counts[:, Count.COMPLETED].sum() == pytest.approx(200_000, rel=0.05)
