"""Scenarios started from another thread."""

import pytest

from sluice import SyncBroker
from sluice.broker.scenarios.model import Scenario, Step
from sluice.errors import SluiceError


def test_scenario_runs_from_another_thread() -> None:
    with SyncBroker(2) as broker:
        run = broker.start_scenario(Scenario(name="restart", brokers=2, steps=(Step(at=0, stop=1, during=20),)))
        assert [step.what for step in run.wait()] == ["broker 1 stops", "broker 1 starts"]
        assert run.done
        assert run.steps == run.wait()
        run.stop()
        with pytest.raises(SluiceError, match="brokers: the scenario expects 1, 2, 3"):
            broker.start_scenario(Scenario(name="of three", brokers=3, duration="1s"))
