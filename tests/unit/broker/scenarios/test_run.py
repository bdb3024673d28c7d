"""Scenario runs in virtual time: steps, journal events, reports, and the restored cluster."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sluice.broker.scenarios.files import load, scenario_of
from sluice.broker.scenarios.report import RuleReport
from sluice.broker.scenarios.run import Run, RunState
from sluice.errors import ClusterError
from sluice.journal_events import ScenarioStep
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.virtual_broker import JOURNAL, VirtualBroker

THREE = ("sluice.brokers=3", "sluice.election.delay.ms=300", JOURNAL)
ORDERS = {"name": "orders", "assignments": [[1, 2, 3], [2, 3, 1]]}
UNKNOWN = {"action": {"kind": "error", "code": "UNKNOWN_TOPIC_OR_PARTITION"}, "api": "Metadata"}
GONE = {"id": "gone", **UNKNOWN}


class Stage:
    """A run on a cluster of three brokers that collects its steps in `lines`."""

    def __init__(self, *steps: Mapping[str, object], keep: bool = False, **rest: object) -> None:
        document = {"name": "s", "brokers": 3, "topics": [ORDERS], "steps": [*steps], **rest}
        self.broker = VirtualBroker(*THREE)
        self.lines: list[str] = []
        self.run = Run(
            scenario_of(document),
            self.broker.cluster_server,
            on_step=lambda step: self.lines.append(
                f"{step.at_ms:g} {step.step}: {step.what}{step.problem and ' - '}{step.problem}"
            ),
            keep=keep,
        )
        self.run.start()

    def leaders(self) -> list[int]:
        return [partition.leader for partition in self.broker.cluster.topics["orders"].partitions]

    def states(self) -> list[str]:
        return [self.broker.cluster.controller.state(node_id).value for node_id in (1, 2, 3)]


def test_steps_run_at_their_times_in_order() -> None:
    stage = Stage({"at": "2s", "start": 1}, {"at": "1s", "stop": 1}, {"at": "1s", "say": "after it, as in the file"})
    stage.broker.advance(999)
    assert stage.lines == ["0 topics[0]: topic orders is created"]
    assert stage.states() == ["running"] * 3
    stage.broker.advance(1)
    assert stage.lines[1:] == ["1000 steps[1].stop: broker 1 stops", "1000 steps[2].say: after it, as in the file"]
    assert stage.states() == ["stopped", "running", "running"]
    assert stage.leaders() == [2, 2]
    stage.broker.advance(1000)
    assert stage.lines[3:] == ["2000 steps[0].start: broker 1 starts"]
    assert stage.states() == ["running"] * 3
    assert stage.run.state is RunState.ENDED


def test_step_with_a_duration_is_undone_and_repeated() -> None:
    stage = Stage({"at": 1000, "isolate": 2, "during": "250ms", "repeat": {"every": "1s", "times": 2}})
    stage.broker.advance(1100)
    assert stage.states() == ["running", "isolated", "running"]
    stage.broker.advance(5000)
    assert stage.lines[1:] == [
        "1000 steps[0].isolate: broker 2 is isolated (1 of 2)",
        "1250 steps[0].during: broker 2 rejoins (1 of 2)",
        "2000 steps[0].isolate: broker 2 is isolated (2 of 2)",
        "2250 steps[0].during: broker 2 rejoins (2 of 2)",
    ]
    assert stage.run.elapsed_ms == 2250


# Step, observation, and its value before and after the step.
UNDONE: dict[str, tuple[dict[str, Any], Callable[[Stage], object], object, object]] = {
    "moved leader": ({"move_leader": {"topic": "orders", "to": 3}}, lambda stage: stage.leaders()[0], 1, 3),
    "quota": (
        {"quota": {"client_id": "shop", "producer_byte_rate": "2M"}},
        lambda stage: stage.broker.cluster.client_quotas.matching({"client-id": "shop"}, (), strict=True),
        [],
        [({"client-id": "shop"}, {"producer_byte_rate": 2e6})],
    ),
    "default quota": (
        {"quota": {"user": "<default>", "request_percentage": 50}},
        lambda stage: stage.broker.cluster.client_quotas.matching({"user": None}, (), strict=True),
        [],
        [({"user": None}, {"request_percentage": 50.0})],
    ),
    "topic config": (
        {"alter_config": {"topic": "orders", "set": {"min.insync.replicas": 3}}},
        lambda stage: stage.broker.cluster.topics["orders"].min_insync_replicas,
        1,
        3,
    ),
    "config of all brokers": (
        {"alter_config": {"set": {"message.max.bytes": "1Ki"}}},
        lambda stage: [one.config.integer("message.max.bytes") for one in stage.broker.cluster.brokers.values()],
        [1048588] * 3,
        [1024] * 3,
    ),
    "config of one broker": (
        {"alter_config": {"broker": 2, "set": {"max.connections": 7}}},
        lambda stage: [one.config.integer("max.connections") for one in stage.broker.cluster.brokers.values()],
        [2147483647] * 3,
        [2147483647, 7, 2147483647],
    ),
}


@pytest.mark.parametrize(("step", "observe", "before", "after"), UNDONE.values(), ids=UNDONE)
@pytest.mark.parametrize("has_duration", [True, False], ids=["after its duration", "at the end"])
def test_change_is_undone(
    step: dict[str, Any], observe: Callable[[Stage], object], before: object, after: object, has_duration: bool
) -> None:
    during = {"during": "1s"} if has_duration else {}
    stage = Stage({"at": "1s", **step, **during}, duration="3s")
    assert observe(stage) == before
    stage.broker.advance(1000)
    assert observe(stage) == after
    stage.broker.advance(1000)
    assert observe(stage) == (before if has_duration else after)
    stage.broker.advance(1000)
    assert stage.run.done
    assert stage.run.report().problems == []
    assert observe(stage) == (after if "move_leader" in step and not has_duration else before), "a moved leader stays"


def test_failed_step_is_reported_and_the_rest_runs() -> None:
    stage = Stage({"at": "1s", "stop": 1}, {"at": "2s", "say": "x"})
    stage.broker.cluster_server.stop_broker(1)
    stage.broker.advance(2000)
    assert stage.lines[1:] == ["1000 steps[0].stop: broker 1 stops - broker 1 is stopped", "2000 steps[1].say: x"]
    assert [step.problem for step in stage.run.report().problems] == ["broker 1 is stopped"]


def test_stopped_run_restores_the_cluster() -> None:
    stage = Stage({"at": "1s", "stop": 1, "during": "5s"}, {"at": "1s", "isolate": 2}, {"at": "3s", "say": "not yet"})
    stage.broker.advance(2000)
    stage.run.stop()
    assert stage.states() == ["stopped", "running", "running"], "broker 1 starts later"
    stage.broker.advance(10_000)
    assert stage.run.done
    assert stage.run.state is RunState.STOPPED
    assert stage.run.elapsed_ms == 2000
    assert stage.states() == ["running"] * 3
    assert not any("not yet" in line for line in stage.lines)


def test_run_can_keep_its_changes() -> None:
    stage = Stage({"at": "1s", "stop": 1}, {"at": "1s", "quota": {"user": "u", "request_percentage": 9}}, keep=True)
    stage.broker.advance(2000)
    assert stage.run.done
    assert stage.states() == ["stopped", "running", "running"]
    assert stage.broker.cluster.client_quotas.matching({"user": "u"}, (), strict=True) != []


def test_step_callback_can_stop_the_run() -> None:
    broker = VirtualBroker(*THREE)
    steps = [{"at": "1s", "stop": 1}, {"at": "1s", "stop": 2}]
    run = Run(
        scenario_of({"name": "s", "brokers": 3, "steps": steps}), broker.cluster_server, on_step=lambda _: run.stop()
    )
    run.start()
    broker.advance(5000)
    assert [step.step for step in run.steps] == ["steps[0].stop"]
    assert run.done


def test_stopping_cluster_stops_the_run() -> None:
    stage = Stage({"at": "1s", "stop": 1})
    stage.broker.cluster_server.is_stopping = True
    stage.broker.advance(1000)
    assert stage.run.done
    assert stage.lines[1:] == []


def test_internal_topics_are_created_for_steps_that_use_them() -> None:
    move = {"at": "1s", "move_leader": {"topic": "__consumer_offsets", "to": 2}}
    stage = Stage(move, {"at": "2s", "move_leader": {"topic": "__consumer_offsets", "to": 1}})
    stage.broker.advance(2000)
    assert stage.run.report().problems == []
    assert stage.broker.partition("__consumer_offsets").leader == 1


def test_existing_topic_is_used_unchanged() -> None:
    broker = VirtualBroker(*THREE)
    broker.topic("orders", 5)
    run = Run(scenario_of({"name": "s", "brokers": 3, "topics": [ORDERS]}), broker.cluster_server)
    run.start()
    assert run.report().problems == []
    assert len(broker.cluster.topics["orders"].partitions) == 5


def test_each_step_is_in_the_journal() -> None:
    stage = Stage({"at": "1s", "stop": 1, "during": "1s"}, {"at": "2s", "say": "over"})
    stage.broker.advance(1500)
    stage.broker.cluster_server.isolate_broker(2)  # not part of the scenario
    stage.broker.advance(1500)
    found = stage.broker.journal.events(kind="scenario-step")
    events = [one for one in found if isinstance(one, ScenarioStep)]
    assert {(one.run, one.scenario, one.problem) for one in events} == {("run", "s", "")}
    assert [(one.broker, one.step, one.what) for one in events] == [
        (-1, "", "begins"),
        (-1, "topics[0]", "topic orders is created"),
        (1, "steps[0].stop", "broker 1 stops"),
        (1, "steps[0].during", "broker 1 starts"),
        (-1, "steps[1].say", "over"),
        (-1, "", "ends"),
    ]


def test_run_requires_enough_brokers() -> None:
    run = Run(load("rolling-restart"), VirtualBroker(JOURNAL).cluster_server)
    with pytest.raises(ClusterError, match="brokers: the scenario expects 1, 2, 3, got 1"):
        run.start()


def test_run_requires_the_expected_broker_ids() -> None:
    run = Run(load("rolling-restart"), VirtualBroker("sluice.brokers=3", "node.id=7").cluster_server)
    with pytest.raises(ClusterError, match="brokers: the scenario expects 1, 2, 3, got 7, 8, 9"):
        run.start()


def test_report_lists_configs_that_differ() -> None:
    config = {"sluice.election.delay.ms": 500, "num.partitions": 1, "log.cleaner.threads": 1}
    scenario = scenario_of({"name": "s", "config": config, "duration": "1s"})
    assert Run(scenario, VirtualBroker(*THREE).cluster_server).report().differences == [
        "sluice.election.delay.ms is 300, not 500"
    ]


def test_step_with_an_internal_error_ends_neither_the_run_nor_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage({"at": "1s", "stop": 1}, {"at": "2s", "say": "next step"})

    def fail(node_id: int, *, controlled: bool) -> None:
        raise KeyError(node_id, controlled)

    monkeypatch.setattr(stage.broker.cluster_server, "stop_broker", fail)
    stage.broker.advance(2000)
    assert stage.lines[1:] == [
        "1000 steps[0].stop: broker 1 stops - KeyError: (1, True)",
        "2000 steps[1].say: next step",
    ]


def test_run_requires_all_brokers_to_be_running() -> None:
    broker = VirtualBroker(*THREE)
    broker.cluster_server.isolate_broker(2)
    with pytest.raises(ClusterError, match="broker 2: expected running at the start, got isolated"):
        Run(load("rolling-restart"), broker.cluster_server).start()


def test_wait_returns_when_the_run_ends() -> None:
    async def play() -> None:
        broker = VirtualBroker(*THREE)
        run = Run(scenario_of({"name": "s", "steps": [{"at": "1s", "say": "x"}]}), broker.cluster_server)
        run.start()
        waiting = asyncio.create_task(run.wait())
        await asyncio.wait([waiting], timeout=0)
        assert not waiting.done()
        broker.advance(1000)
        await waiting
        await run.wait()  # an ended run returns immediately

    asyncio.run(play())


def metadata_errors(stage: Stage) -> list[int]:
    """Return the error codes of a metadata request for `orders`."""
    client = stage.broker.client("shop")
    response = client.call(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 9)
    return [topic.error_code for topic in response.topics]


def test_rules_apply_from_the_start_to_the_end() -> None:
    stage = Stage(faults=[GONE], duration="1s")
    assert metadata_errors(stage) == [3]
    stage.broker.advance(1000)
    assert metadata_errors(stage) == [0]
    assert stage.run.report().rules == [RuleReport("gone", "error", 1, 1, "")]
    assert stage.broker.cluster_server.faults.list() == []


def test_rules_apply_while_their_step_lasts() -> None:
    rule = {"action": {"kind": "error", "code": "LEADER_NOT_AVAILABLE"}, "api": "Metadata"}
    stage = Stage({"at": "1s", "stop": 3, "during": "1s", "meanwhile": [rule], "repeat": {"every": "2s", "times": 2}})
    seen = []
    for _ in range(5):
        seen.append(metadata_errors(stage))
        stage.broker.advance(1000)
    assert seen == [[0], [5], [0], [5], [0]]
    assert [(rule.id, rule.hits) for rule in stage.run.report().rules] == [("fault-1", 1), ("fault-2", 1)]
    assert "1000 steps[0].meanwhile[0]: a fault rule (error) is in force (1 of 2)" in stage.lines
    assert "2000 steps[0].meanwhile[0]: a fault rule (error) is removed (1 of 2)" in stage.lines


def test_rule_added_twice_is_reported_once() -> None:
    stage = Stage({"at": "1s", "fault": GONE}, {"at": "2s", "remove_fault": "gone"}, {"at": "3s", "fault": GONE})
    for _ in range(4):
        metadata_errors(stage)
        stage.broker.advance(1000)
    assert stage.run.report().rules == [RuleReport("gone", "error", 1, 1, "")]
    assert stage.broker.cluster_server.faults.list() == []


def test_run_can_keep_its_rules() -> None:
    stage = Stage({"at": "1s", "fault": {"id": "stays", "action": "close"}}, keep=True)
    stage.broker.advance(1000)
    assert stage.run.done
    assert [fault.id for fault in stage.broker.cluster_server.faults.list()] == ["stays"]


def test_same_seed_gives_the_same_faults_on_any_broker() -> None:
    def hits(scenario_seed: int, broker_draws: int) -> list[int]:
        rule = {**UNKNOWN, "probability": 0.5}
        broker = VirtualBroker(JOURNAL)
        for _ in range(broker_draws):
            broker.cluster_server.faults.add({"action": "close", "api": "Produce"})  # uses the next generated id
        document = {"name": "s", "seed": scenario_seed, "topics": [{"name": "t"}], "faults": [rule], "duration": 9}
        run = Run(scenario_of(document), broker.cluster_server)
        run.start()
        client = broker.client()
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        return [client.call(request, 9).topics[0].error_code for _ in range(32)]

    assert hits(7, 0) == hits(7, 3)
    assert hits(7, 0) != hits(8, 0)
    assert {*hits(7, 0)} == {0, 3}
