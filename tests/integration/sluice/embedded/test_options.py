"""Options of a test's brokers: their effects, and one-line errors."""

import pytest

from sluice.broker.scenarios.model import CreateTopic, Scenario, Step
from sluice.embedded.options import started
from sluice.errors import SluiceError
from sluice.faults import Delay, Error


def test_brokers_follow_their_options() -> None:
    with started(
        brokers=2,
        config={"num.partitions": 3},
        quota={"client_id": "shop", "produce": "100k"},
        faults=["close", Error("NOT_LEADER_OR_FOLLOWER"), {"action": {"kind": "delay", "ms": 5}, "api": "Fetch"}],
        admin_port=0,
    ) as (broker, scenario):
        assert list(broker.brokers) == [1, 2]
        assert scenario is None
        assert broker.admin is not None
        assert [(one.entity, one.quotas) for one in broker.quotas] == [
            ({"client-id": "shop"}, {"producer_byte_rate": 100_000.0})
        ]
        assert len(broker.faults.list()) == 3
        broker.faults.clear()
        broker.cluster.create_topic("orders")
        assert broker.cluster.partition("orders", 2).leader > 0


def test_scenario_sets_the_number_of_brokers() -> None:
    scenario = Scenario(
        name="a", brokers=3, config={"num.partitions": 5}, steps=(Step(at=0, say="hello"), Step(at="60m", say="bye"))
    )
    with started(scenario=scenario, config={"num.partitions": 6}) as (broker, run):
        assert len(broker.brokers) == 3
        broker.cluster.create_topic("orders")
        assert broker.cluster.partition("orders", 5).leader > 0
        assert run is not None
        assert [step.what for step in run.steps] == ["hello"]
    assert run.done


def test_scenario_with_a_failed_step_fails_the_test() -> None:
    topic = CreateTopic(name="t", assignments=((1,),))  # which is stopped
    scenario = Scenario(name="a", brokers=2, steps=(Step(at=0, stop=1), Step(at=1, create_topic=topic)))
    running = started(scenario=scenario)
    _, run = running.__enter__()
    assert run is not None
    run.wait()
    with pytest.raises(SluiceError, match="scenario a: topic t is created: t: All brokers"):
        running.__exit__(None, None, None)


def test_disabled_fault_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("an internal error")

    monkeypatch.setattr(Delay, "before", fail)
    running = started(faults=[Delay(ms=1)])
    broker, _ = running.__enter__()
    broker.client().send("orders", b"a")
    with pytest.raises(SluiceError, match="fault rule fault-1 was disabled: ZeroDivisionError: an internal error"):
        running.__exit__(None, None, None)
