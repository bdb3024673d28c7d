"""Tests of scenarios as segments of time."""

import pytest

from sluice.broker.scenarios.files import catalogued, names
from sluice.errors import ScenarioError
from sluice.fleet.simulation.schedule import FETCH, METADATA, NO_LEADER, PRODUCE, Schedule, schedule_of
from tests.support.fleet_simulation import schedule_with


def _schedule(*steps: dict[str, object], brokers: int = 3, **more: object) -> Schedule:
    return schedule_with(*steps, brokers=brokers, **more)  # type: ignore[arg-type]  # of a scenario


def _leaders(schedule: Schedule) -> list[tuple[float, list[int]]]:
    return [(segment.from_us / 1e6, segment.leaders.tolist()) for segment in schedule.segments]


def test_leaders_of_a_killed_broker_move_after_the_election_delay() -> None:
    schedule = _schedule({"at": "10s", "kill": 1, "during": "20s"})
    assert _leaders(schedule) == [
        (0, [0, 1, 2, 0, 1, 2]), (10, [0, 1, 2, 0, 1, 2]), (19, [1, 1, 2, 2, 1, 2]), (30, [1, 1, 2, 2, 1, 2]),
    ]  # fmt: skip
    assert [segment.up.tolist() for segment in schedule.segments] == [
        [True] * 3, [False, True, True], [False, True, True], [True] * 3,
    ]  # fmt: skip
    assert [(segment.replicated_us / 1e6).tolist() for segment in schedule.segments[:2]] == [[0] * 6, [19] * 6]
    assert (schedule.trigger_us, schedule.healed_us) == (10_000_000, 30_000_000)
    assert schedule.next_stop_us()[:, 0].tolist()[:2] == [10_000_000, 2**62]


def test_leaders_of_a_stopped_broker_move_at_once() -> None:
    assert _leaders(_schedule({"at": "10s", "stop": 1, "during": "5s"}))[1] == (10, [1, 1, 2, 2, 1, 2])


def test_a_broker_that_returns_before_the_election_leads_again() -> None:
    schedule = _schedule({"at": "10s", "kill": 1, "during": "5s"})
    assert _leaders(schedule) == [(at, [0, 1, 2, 0, 1, 2]) for at in (0, 10, 15)]
    assert schedule.segments[2].replicated_us.max() == 15_000_000


def test_a_partition_without_running_replicas_waits_for_one() -> None:
    steps: dict[str, object] = {"at": "1s", "stop": 1, "during": "5s"}
    assert _leaders(_schedule(steps, brokers=1)) == [(0, [0]), (1, [NO_LEADER]), (6, [0])]


def test_partitions_and_replicas_are_those_of_the_first_topic() -> None:
    topics = [{"name": "orders", "assignments": [[3, 1], [1, 2]]}]
    assert _leaders(_schedule({"at": "1s", "stop": 3}, topics=topics)) == [(0, [2, 0]), (1, [0, 0])]
    moved: dict[str, object] = {"at": "1s", "move_leader": {"topic": "orders", "partition": 1, "to": 2}, "during": "2s"}
    assert _leaders(_schedule(moved, topics=topics)) == [(0, [2, 0]), (1, [2, 1]), (3, [2, 0])]


def test_faults_are_in_force_until_they_end() -> None:
    fault: dict[str, object] = {"api": "Produce", "broker": 2, "action": "black-hole", "probability": 0.5}
    schedule = _schedule({"at": "1s", "fault": fault, "during": "2s"})
    (window,) = schedule.segments[1].faults
    assert (window.probability, window.brokers.tolist()) == (0.5, [False, True, False])
    assert schedule.fault_ends_us() == {id(window): 3_000_000}


def test_rules_may_have_partitions_schedules_random_delays_and_other_apis() -> None:
    faults: list[dict[str, object]] = [
        {"topic": "orders", "partition": 1, "schedule": "1 fail, 2 pass, repeat", "action": "close"},
        {"topic": "orders", "api": ["Metadata", "Fetch"], "action": {"kind": "delay", "min": 2, "max": "1s"}},
    ]
    steps: list[dict[str, object]] = [{"at": "1s", "fault": fault} for fault in faults]
    one, other = _schedule(*steps, topics=_TOPICS).segments[1].faults
    assert (one.kinds, one.partitions.tolist(), one.schedule) == (
        frozenset((PRODUCE, FETCH)), [False, True], (None, None, "1 fail, 2 pass, repeat"),
    )  # fmt: skip
    assert (other.kinds, other.schedule) == (frozenset((METADATA, FETCH)), None)
    assert other.partitions.all()
    assert (one.delay_us, other.delay_us) == ((0, 0), (2_000, 1_000_000))


@pytest.mark.parametrize(("seconds", "until"), [("12s", 20), ("30s", 30)])
def test_the_simulation_continues_for_ten_seconds_after_the_last_change(seconds: str, until: int) -> None:
    assert _schedule({"at": "10s", "stop": 1}, duration=seconds).duration_us == until * 1_000_000
    assert _schedule(duration=seconds).duration_us == int(seconds[:-1]) * 1_000_000


_ERROR = {"kind": "error", "code": "NOT_LEADER_OR_FOLLOWER"}
_TOPICS = [{"name": "orders", "assignments": [[1, 2], [2, 3]]}]


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({"isolate": 1}, "steps[0].isolate: has no effect in a fleet simulation; expected one of stop, kill"),
        ({"fault": {"action": _ERROR, "after": "3s"}}, "steps[0].fault.after: has no effect in a fleet simulation;"),
        ({"fault": {"action": _ERROR, "topic": "other"}}, "steps[0].fault.topic: expected the topic of the fleet"),
        ({"fault": {"action": _ERROR, "partition": 2}}, "steps[0].fault.partition: expected a partition up to 1"),
        (
            {"fault": {"action": "close", "api": "ListOffsets"}},
            "steps[0].fault.api: expected ApiVersions, Metadata, Produce, Fetch",
        ),
        ({"fault": {"action": _ERROR, "api": "Metadata"}}, "steps[0].fault"),
        ({"fault": {"action": {"kind": "delay", "mean": 5}}}, "steps[0].fault.action: has no effect"),
        ({"fault": {"action": {"kind": "error", "code": "INVALID_RECORD"}}}, "steps[0].fault.action.code: expected"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_steps_without_effect_are_refused(step: dict[str, object], problem: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        _schedule({"at": "1s", **step}, topics=_TOPICS)
    assert str(raised.value).startswith(problem)


def test_built_in_scenarios_without_effect_on_producers_alone_are_refused() -> None:
    def is_refused(name: str) -> bool:
        try:
            schedule_of(catalogued(name))
        except ScenarioError:
            return True
        return False

    assert set(filter(is_refused, names())) == {
        "coordinator-loss", "duplicate-deliveries", "empty-metadata", "garbled-answers", "group-rebalance-loop",
        "isolated-leader", "poisoned-partition", "slow-disk", "stale-metadata", "throttle-storm",
    }  # fmt: skip
