"""The built-in scenarios in front of a cluster: each runs, or is refused with the reason."""

import re

import pytest

from sluice.broker.scenarios.files import catalogued, entries, scenario_of
from sluice.broker.scenarios.run import Run, RunState
from sluice.errors import ClusterError
from tests.support.records import produce
from tests.support.virtual_broker import VirtualBroker
from tests.support.virtual_proxy import VirtualProxy

LOSES_RECORDS = "loses_records: not possible in a proxy, which cannot make the upstream cluster lose records"
ELECTS = "not possible in a proxy: the upstream cluster elects its leaders"
REFUSED = {
    "coordinator-loss": f"steps[0].move_leader: {ELECTS}",
    "disk-full": "steps[0].fault: not possible in a proxy: the upstream brokers have the disks."
    " Use error with code KAFKA_STORAGE_ERROR",
    "isolated-leader": LOSES_RECORDS,
    "leader-ping-pong": f"steps[0].move_leader: {ELECTS}",
    "stale-metadata": "steps[0].fault: not possible in a proxy: the upstream brokers have the metadata."
    " Use wrong-leader, unknown-leader or stale-leader-hint",
    "unclean-election": LOSES_RECORDS,
}
WORK = [entry.name for entry in entries() if entry.name not in REFUSED]


def started() -> VirtualProxy:
    proxy = VirtualProxy(upstream=VirtualBroker("sluice.brokers=3"))
    proxy.topic("orders", assignments={0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2)})
    return proxy


@pytest.mark.parametrize("name", WORK)
def test_scenario_runs_without_changing_the_upstream(name: str) -> None:
    proxy = started()
    run = Run(catalogued(name), proxy.cluster_server)
    run.start()
    proxy.advance(run.duration_ms)
    assert run.state is RunState.ENDED
    assert run.steps
    assert [step.problem for step in run.steps if step.problem] == []
    assert not any("topic orders is created" in step.what for step in run.steps)
    upstream = proxy.upstream.cluster
    assert [upstream.controller.state(node_id).value for node_id in (1, 2, 3)] == ["running"] * 3
    assert [partition.leader for partition in upstream.topics["orders"].partitions] == [1, 2, 3]
    assert list(proxy.cluster_server.faults) == []
    for node_id in (1, 2, 3):
        request = produce(9, topic="orders", partition=node_id - 1)
        assert not proxy.client(node_id=node_id).call(request, 9).responses[0].partition_responses[0].error_code


@pytest.mark.parametrize(("name", "reason"), REFUSED.items(), ids=REFUSED)
def test_scenario_is_refused_at_its_start(name: str, reason: str) -> None:
    run = Run(catalogued(name), started().cluster_server)
    with pytest.raises(ClusterError, match=f"^{re.escape(reason)}$"):
        run.start()
    assert run.state is RunState.NEW


REFUSED_STEPS = [
    ("create_topic", {"name": "t"}, "the upstream cluster has the topics"),
    ("elect", {"topic": "orders", "election": "preferred"}, "the upstream cluster elects its leaders"),
    ("quota", {"user": "a", "request_percentage": 5}, "it cannot measure the time of the upstream brokers' threads"),
    ("alter_config", {"broker": 1, "set": {"max.connections": 5}}, "the upstream cluster has the configs"),
]


@pytest.mark.parametrize(("kind", "step", "reason"), REFUSED_STEPS)
def test_step_is_refused(kind: str, step: dict[str, object], reason: str) -> None:
    topics = [{"name": "orders", "partitions": 3}]
    scenario = scenario_of({"name": "s", "brokers": 3, "topics": topics, "steps": [{"at": 0, kind: step}]})
    with pytest.raises(ClusterError, match=rf"^steps\[0\]\.{kind}: not possible in a proxy: {reason}$"):
        Run(scenario, started().cluster_server).start()
