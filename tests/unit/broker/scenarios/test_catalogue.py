"""The catalogue in virtual time: each scenario can do all its steps, and leaves the cluster as it was."""

import pytest

from sluice.broker.scenarios.files import load, names
from sluice.broker.scenarios.run import Run, RunState
from sluice.broker.scenarios.timeline import broker_properties
from tests.support.virtual_broker import VirtualBroker

_LONGEST_MS = 10_000


def test_there_are_at_least_fifteen() -> None:
    assert len(names()) >= 15


@pytest.mark.parametrize("name", names())
def test_a_scenario_runs_to_its_end_and_leaves_all_as_it_was(name: str) -> None:
    scenario = load(name)
    properties = [f"{key}={value}" for key, value in broker_properties(scenario).items()]
    broker = VirtualBroker(*properties)
    run = Run(scenario, broker.cluster_server)
    run.start()
    assert run.duration_ms <= _LONGEST_MS, "with clients it is to take less than 20 s"
    broker.advance(run.duration_ms + 1000)
    report = run.report()
    assert report.problems == []
    assert (run.state, run.done) == (RunState.ENDED, True)
    assert all(broker.cluster.controller.is_running(node_id) for node_id in broker.cluster.brokers)
    assert broker.cluster_server.faults.list() == []
    assert broker.cluster.client_quotas.matching({}, (), strict=False) == []
