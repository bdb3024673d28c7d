"""Times of steps, and errors with their path for steps that contradict each other."""

from typing import Any

import msgspec
import pytest

from sluice.broker.scenarios.files import scenario_of
from sluice.broker.scenarios.model import Step
from sluice.broker.scenarios.timeline import ACTIONS, REVERSIBLE, broker_properties, timeline
from sluice.errors import ScenarioError

ORDERS = {"name": "orders", "partitions": 2}
PLACED = {"name": "placed", "assignments": [[1, 2], [2, 3]]}


def scenario(*steps: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"name": "s", "brokers": 3, "topics": [ORDERS, PLACED], "steps": list(steps), **rest}


def step(**action: Any) -> dict[str, Any]:
    """Return a scenario with one step after a second."""
    return scenario({"at": "1s", **action})


def moments(document: dict[str, Any]) -> list[str]:
    found = timeline(scenario_of(document)).moments
    return [f"{moment.at_ms:g} {moment.path}: {moment.action.description}{moment.times}" for moment in found[2:]]


def test_steps_are_ordered_by_time_then_ends_first_then_file_order() -> None:
    document = scenario(
        {"at": "2s", "say": "b"},
        {"at": "2s", "isolate": 1},
        {"at": "1.5s", "stop": 1, "during": "500ms"},
        {"at": 1, "say": "a"},
    )
    assert moments(document) == [
        "1 steps[3].say: a",
        "1500 steps[2].stop: broker 1 stops",
        "2000 steps[2].during: broker 1 starts",
        "2000 steps[0].say: b",
        "2000 steps[1].isolate: broker 1 is isolated",
    ]


def test_repeated_step_is_numbered() -> None:
    document = scenario({"at": "1s", "say": "again", "repeat": {"every": "10s", "times": 3}})
    assert moments(document) == [f"{ms} steps[0].say: again ({n} of 3)" for n, ms in enumerate((1000, 11000, 21000), 1)]


DURATIONS = {"until the last end of a step": ({}, 3000.0), "explicit duration": ({"duration": "1m"}, 60_000.0)}


@pytest.mark.parametrize(("rest", "duration_ms"), DURATIONS.values(), ids=DURATIONS)
def test_scenario_duration(rest: dict[str, Any], duration_ms: float) -> None:
    document = scenario({"at": "1s", "kill": 1, "during": "2s"}, {"at": "2s", "say": "x"}, **rest)
    assert timeline(scenario_of(document)).duration_ms == duration_ms


def test_broker_properties_include_the_scenario_config() -> None:
    found = scenario_of(scenario(config={"quota.window.num": 5, "auto.create.topics.enable": False}))
    assert broker_properties(found) == {
        "quota.window.num": "5",
        "auto.create.topics.enable": "false",
        "sluice.brokers": "3",
    }


AT = {"at": "1s"}
INVALID: dict[str, dict[str, Any]] = {
    # steps that contradict the state at their time
    "steps[0].start: at 1 s: broker 1 is running at this time": step(start=1),
    "steps[0].rejoin: at 1 s: broker 1 is running at this time": step(rejoin=1),
    "steps[0].stop: at 1 s: unknown broker; expected one of 1, 2, 3, got 4": step(stop=4),
    "steps[0].stop: at 2 s: broker 1 is stopped at this time": scenario({"at": "2s", "stop": 1}, {**AT, "kill": 1}),
    "steps[0].during: at 3 s: broker 1 is running at this time": scenario(
        {**AT, "stop": 1, "during": "2s"}, {"at": "2s", "start": 1}
    ),
    "steps[0].stop: at 2 s (2 of 2): broker 1 is stopped at this time": step(
        stop=1, during="2s", repeat={"every": "1s", "times": 2}
    ),
    "steps[0].create_topic.name: at 1 s: topic orders already exists": step(create_topic=ORDERS),
    (
        "steps[0].elect.topic: at 1 s: unknown topic at this time; expected one of __consumer_offsets, "
        "__transaction_state, orders, placed"
    ): scenario({**AT, "elect": {"topic": "new"}}, {"at": "2s", "create_topic": {"name": "new"}}),
    "steps[0].elect.partition: at 1 s: expected partition 0 to 1 of orders, got 2": step(
        elect={"topic": "orders", "partition": 2}
    ),
    "steps[0].move_leader.to: at 1 s: expected a broker with a replica (1, 2), got 3": step(
        move_leader={"topic": "placed", "to": 3}
    ),
    "steps[1].move_leader.to: at 1 s: broker 2 is stopped at this time": scenario(
        {"at": 0, "stop": 2}, {**AT, "move_leader": {"topic": "placed", "to": 2}}
    ),
    "steps[1].alter_config.broker: at 1 s: broker 2 is stopped at this time": scenario(
        {"at": 0, "stop": 2}, {**AT, "alter_config": {"broker": 2, "remove": ["max.connections"]}}
    ),
    # time
    "steps[0].stop: at 3 s; expected at most the duration, 2 s": scenario({"at": "3s", "stop": 1}, duration="2s"),
    "steps[0].during: at 3 s; expected at most the duration, 2 s": scenario(
        {**AT, "stop": 1, "during": "2s"}, duration="2s"
    ),
    "steps[0].repeat.every: expected more than 0": step(say="x", repeat={"every": "0s", "times": 2}),
    "steps[0].during: expected more than 0": step(stop=1, during=0),
    "steps: expected at most 10000 moments, with all repetitions": step(
        say="x", repeat={"every": "1s", "times": 10**9}
    ),
    "steps[0].during: expected a step that can be undone (stop, kill, ": step(start=1, during="1s"),
    "steps[0].at: expected a duration from 0 to a year, got 900000m": scenario({"at": "900000m", "say": "x"}),
    "steps[0].at: expected a duration from 0 to a year, got inf": scenario({"at": float("inf"), "say": "x"}),
    # fault rules
    "faults[0].api: ": scenario(
        faults=[{"action": {"kind": "error", "code": "NOT_LEADER_OR_FOLLOWER"}, "api": "Metdata"}]
    ),
    "steps[0].fault.action.code: at 1 s: Heartbeat cannot return 6 NOT_LEADER_OR_FOLLOWER; expected one of ": step(
        fault={"action": {"kind": "error", "code": "NOT_LEADER_OR_FOLLOWER"}, "api": "Heartbeat"}
    ),
    "steps[0].fault.brokr: unknown field; expected one of": step(fault={"action": "close", "brokr": 1}),
    "steps[0].fault.broker: at 1 s: unknown broker": step(fault={"action": "close", "broker": 4}),
    "steps[1].fault.id: at 2 s: fault rule a is already in force at this time": scenario(
        {**AT, "fault": {"action": "close", "id": "a"}}, {"at": "2s", "fault": {"action": "close", "id": "a"}}
    ),
    "steps[0].release_fault: at 1 s: fault rule a is not in force at this time; expected one of b": scenario(
        {**AT, "release_fault": "a"}, faults=[{"action": "hold", "id": "b"}]
    ),
    "steps[0].remove_fault: at 1 s: fault rule a is not in force at this time; expected one of b": scenario(
        {**AT, "remove_fault": "a"}, faults=[{"action": "close", "id": "b"}]
    ),
    "steps[0].during: at 3 s: fault rule a is not in force at this time; no fault rule is": scenario(
        {**AT, "fault": {"action": "close", "id": "a"}, "during": "2s"}, {"at": "2s", "remove_fault": "a"}
    ),
    "steps[0].meanwhile: requires `during`": step(stop=1, meanwhile=[{"action": "close"}]),
    "steps[0].meanwhile[0].action.code: at 1 s: unknown error code 'NONSENSE'": step(
        stop=1, during="1s", meanwhile=[{"action": {"kind": "error", "code": "NONSENSE"}}]
    ),
    "faults: expected a list, got a table": scenario(faults={"action": "close"}),
    # number of actions
    "steps[0]: expected exactly one of say, stop, ": scenario(AT),
    "got say and stop": step(stop=1, say="x"),
    # values
    "steps[0].quota.producer_byte_rate: at 1 s: expected bytes per second": step(
        quota={"client_id": "a", "producer_byte_rate": "fast"}
    ),
    "steps[0].quota.connection_creation_rate: at 1 s: Invalid configuration key connection_creation_rate": step(
        quota={"client_id": "a", "connection_creation_rate": 5}
    ),
    "steps[0].quota: at 1 s: expected user, client_id or ip": step(quota={"request_percentage": 5}),
    "steps[0].quota: at 1 s: expected at least one of producer_byte_rate, ": step(quota={"user": "u"}),
    "steps[0].remove_quota: at 1 s: Invalid quota entity combination": step(
        remove_quota={"user": "u", "ip": "1.1.1.1"}
    ),
    "quotas[0].connection_creation_rate: at 0 ms: x is not a": scenario(
        quotas=[{"ip": "x", "connection_creation_rate": 5}]
    ),
    "steps[0].alter_config: at 1 s: expected either topic or broker": step(
        alter_config={"topic": "orders", "broker": 1, "remove": ["a"]}
    ),
    "steps[0].alter_config: at 1 s: expected set, remove or both": step(alter_config={"topic": "orders"}),
    "steps[0].alter_config.set: at 1 s: Unknown topic config name: retention": step(
        alter_config={"topic": "orders", "set": {"retention": 1}}
    ),
    "steps[0].alter_config.set: at 1 s: Cannot update these configs dynamically: [node.id]": step(
        alter_config={"set": {"node.id": 1}}
    ),
    "steps[0].alter_config.set: at 1 s: Unknown config name: message.max.byte": step(
        alter_config={"set": {"message.max.byte": 1}}
    ),
    # the cluster
    "config: quota.window.num: expected an integer from 1 to": scenario(config={"quota.window.num": 0}),
    "config: quota.window.nmu: no such property. Did you mean quota.window.num?": scenario(
        config={"quota.window.nmu": 1}
    ),
    "config.sluice.brokers: set `brokers` instead": scenario(config={"sluice.brokers": 3}),
    "topics[0].replicas: at 0 ms: expected at most as many replicas as brokers": scenario(
        topics=[{"name": "a", "replicas": 4}]
    ),
    "topics[0].name: at 0 ms: Topic name is invalid": scenario(topics=[{"name": "a/b"}]),
    "topics[0].config: at 0 ms: Unknown topic config name: x": scenario(topics=[{"name": "a", "config": {"x": 1}}]),
    "topics[0].assignments: at 0 ms: excludes partitions and replicas": scenario(
        topics=[{"name": "a", "partitions": 1, "assignments": [[1]]}]
    ),
    "topics[0].assignments: at 0 ms: expected at least one partition": scenario(
        topics=[{"name": "a", "assignments": []}]
    ),
    "topics[0].assignments[1]: at 0 ms: The manual partition assignment includes broker 9, but": scenario(
        topics=[{"name": "a", "assignments": [[1], [9]]}]
    ),
}


@pytest.mark.parametrize(("error", "document"), INVALID.items(), ids=INVALID)
def test_invalid_scenario_is_rejected(document: dict[str, Any], error: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        scenario_of(document)
    assert error in str(raised.value)
    assert "\n" not in str(raised.value)


VALUES: dict[str, Any] = {
    "say": "x",
    **dict.fromkeys(("stop", "kill", "start", "isolate", "rejoin"), 1),
    "move_leader": {"topic": "orders", "to": 1},
    "elect": {"topic": "orders"},
    "quota": {"user": "u", "request_percentage": 1},
    "remove_quota": {"user": "u"},
    "alter_config": {"set": {"message.max.bytes": 9}},
    "create_topic": {"name": "new"},
    "fault": {"action": "close"},
    "remove_fault": "a",
    "release_fault": "a",
}


@pytest.mark.parametrize("kind", ACTIONS)
def test_only_reversible_actions_have_an_inverse(kind: str) -> None:
    assert (ACTIONS[kind](_value_of(kind)).inverse() is not None) == (kind in REVERSIBLE)


def _value_of(kind: str) -> object:
    return getattr(msgspec.convert({"at": 2, kind: VALUES[kind]}, Step), kind)
