"""Tests of several Produce requests in flight, of cases that can be calculated by hand."""

import numpy as np
import pytest
from msgspec.structs import replace

from sluice.fleet.models.client_model import ClientModel, Group
from sluice.fleet.simulation import parameters
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.simulation.counters import Count
from sluice.fleet.simulation.engine import Simulation, simulate
from tests.support.fleet_simulation import FAST, schedule_with

_ANY = 1_000_000
_ERROR: dict[str, object] = {"kind": "error", "code": "NOT_ENOUGH_REPLICAS"}


def _model(in_flight: int, **more: object) -> ClientModel:
    return ClientModel(max_in_flight_requests_per_connection=in_flight, **more)  # type: ignore[arg-type]


def _run(
    model: ClientModel, *steps: dict[str, object], broker: BrokerModel = FAST, clients: int = 1, brokers: int = 1
) -> Simulation:
    """Run for 5 s, or until 10 s after the last step."""
    schedule = schedule_with(*steps, brokers=brokers, duration="5s")
    return simulate([Group("test", model, clients)], schedule, broker, seed=1)


def _produce(action: object, during: str = "3s") -> dict[str, object]:
    return {"at": "1s", "during": during, "fault": {"api": "Produce", "action": action}}


@pytest.mark.parametrize(("in_flight", "per_s"), [(1, 10), (2, 20), (5, 50), (_ANY, 60)])
def test_a_round_trip_carries_as_many_requests_as_may_be_in_flight(in_flight: int, per_s: float) -> None:
    far = replace(FAST, network_us=50_000)
    run = _run(_model(in_flight, requests_per_s=60, records_per_request=1), broker=far)
    assert run.counts[10:, Count.COMPLETED].sum() / 4 == pytest.approx(per_s, rel=0.03)


@pytest.mark.parametrize(("in_flight", "times_out"), [(1, False), (4, False), (5, True), (_ANY, True)])
def test_a_broker_serves_the_requests_of_a_connection_one_after_another(in_flight: int, times_out: bool) -> None:
    """A request waits for those before it: the fifth is answered after 500 ms."""
    slow = replace(FAST, produce_us=100_000)
    model = _model(in_flight, requests_per_s=100, records_per_request=1, request_timeout_ms=450)
    run = _run(model, broker=slow)
    assert bool(run.counts[:, Count.REQUEST_TIMEOUTS].any()) == times_out
    if not times_out:
        assert run.counts[10:, Count.COMPLETED].sum() / 4 == pytest.approx(10, rel=0.04)


@pytest.mark.parametrize(
    ("in_flight", "merges", "sent", "retried"),
    [(1, False, 1, 1), (2, False, 2, 2), (5, False, 5, 5), (_ANY, False, 8, 8), (_ANY, True, 8, 1)],
    ids=["one", "two", "five", "any number", "any number, merged"],
)
def test_requests_in_flight_fail_with_the_first_and_are_retried_in_order(
    in_flight: int, merges: bool, sent: int, retried: int
) -> None:
    model = _model(in_flight, retries_merge=merges, requests_per_s=2.5, request_timeout_ms=3000)
    run = _run(model, _produce("black-hole", during="3500ms"))
    during, after = run.counts[10:41], run.counts[41:]
    assert during[:, Count.PRODUCE_REQUESTS].sum() == pytest.approx(sent, abs=1)
    assert during[:, Count.PRODUCE_RETRIES].sum() + after[:, Count.PRODUCE_RETRIES].sum() == pytest.approx(
        retried, abs=1
    )
    assert run.counts[:, Count.REQUEST_TIMEOUTS].sum() == 1
    assert run.counts[:, Count.COMPLETED].sum() == int(2.5 * 14.5)


def test_a_broker_responds_with_errors_to_the_requests_after_one_that_fails() -> None:
    far = replace(FAST, network_us=50_000)
    runs = [_run(_model(n, requests_per_s=50), _produce(_ERROR, "250ms"), broker=far) for n in (1, 5)]
    assert runs[0].counts[:, Count.ERRORS].sum() == runs[0].counts[:, Count.PRODUCE_RETRIES].sum() <= 2
    assert runs[1].counts[:, Count.ERRORS].sum() == runs[1].counts[:, Count.PRODUCE_RETRIES].sum() >= 5


@pytest.mark.parametrize("in_flight", [5, _ANY])
@pytest.mark.parametrize(
    "step",
    [{"at": "1s", "kill": 1, "during": "3s"}, _produce("black-hole"), _produce(_ERROR), _produce("close")],
    ids=["killed", "silent", "errors", "closed"],
)
def test_no_operation_is_lost_or_completed_twice(step: dict[str, object], in_flight: int) -> None:
    far = replace(FAST, network_us=20_000)
    model = _model(in_flight, requests_per_s=20, delivery_timeout_ms=2000, request_timeout_ms=700)
    run = _run(model, step, broker=far, clients=2)
    ended = run.counts[:, [Count.COMPLETED, Count.EXPIRED]].sum()
    assert 2 * 20 * 13.8 <= ended <= 2 * 20 * 14
    assert run.counts[:, Count.EXPIRED].any()
    assert run.counts[120:, Count.COMPLETED].sum() == pytest.approx(2 * 20 * 2, abs=3)


def test_a_throttled_connection_is_muted_for_requests_in_flight_too() -> None:
    quota: dict[str, object] = {"at": "0s", "quota": {"client_id": "<default>", "producer_byte_rate": 10_000}}
    runs = [_run(_model(n, requests_per_s=50, record_bytes=1000, records_per_request=1), quota) for n in (1, 5)]
    assert all(run.counts[:, Count.THROTTLED_US].any() for run in runs)
    completed = [run.counts[:, Count.COMPLETED].sum() for run in runs]
    assert completed[1] == pytest.approx(completed[0], abs=1)


@pytest.mark.parametrize("fault", ["black-hole", "close", _ERROR], ids=["silent", "closed", "errors"])
def test_a_limit_of_one_is_the_same_with_and_without_pipelining(fault: object, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _model(1, requests_per_s=2, request_timeout_ms=1000, metadata_max_age_ms=1e9)
    plain = _run(model, _produce(fault), clients=20, brokers=3)
    one = parameters.Parameters

    class Pipelined(one):  # type: ignore[misc, valid-type]
        def __init__(self, lanes: list[parameters.Lane]) -> None:
            super().__init__(lanes)
            self.is_pipelined = np.ones(len(lanes), dtype=np.bool_)

    monkeypatch.setattr("sluice.fleet.simulation.engine.Parameters", Pipelined)
    assert (_run(model, _produce(fault), clients=20, brokers=3).counts == plain.counts).all()


def test_a_closed_loop_has_one_request_in_flight() -> None:
    counts = [_run(_model(n, loop="closed", requests_per_s=5), _produce("close"), clients=2).counts for n in (1, 5)]
    assert (counts[0] == counts[1]).all()
