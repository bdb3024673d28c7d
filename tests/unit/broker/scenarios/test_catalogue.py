"""The catalogue in virtual time: each scenario completes all its steps and restores the cluster."""

import pytest

from sluice.broker.scenarios.files import load, names
from sluice.broker.scenarios.run import Run, RunState
from sluice.broker.scenarios.timeline import broker_properties
from tests.support.virtual_broker import VirtualBroker

_LONGEST_MS = 10_000


def test_catalogue_has_at_least_fifteen_scenarios() -> None:
    assert len(names()) >= 15


@pytest.mark.parametrize("name", names())
def test_scenario_completes_and_restores_the_cluster(name: str) -> None:
    scenario = load(name)
    properties = [f"{key}={value}" for key, value in broker_properties(scenario).items()]
    broker = VirtualBroker(*properties)
    run = Run(scenario, broker.cluster_server)
    run.start()
    assert run.duration_ms <= _LONGEST_MS, "the duration limit keeps a run with clients below 20 s"
    broker.advance(run.duration_ms + 1000)
    report = run.report()
    assert report.problems == []
    assert (run.state, run.done) == (RunState.ENDED, True)
    assert all(broker.cluster.controller.is_running(node_id) for node_id in broker.cluster.brokers)
    assert broker.cluster_server.faults.list() == []
    assert broker.cluster.client_quotas.matching({}, (), strict=False) == []
