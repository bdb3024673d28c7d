"""How a group's partitions are divided."""

import pytest

from sluice.client.consumer.group.assignors import (
    ASSIGNORS,
    GroupMember,
    Plan,
    assign_range,
    assign_round_robin,
    assign_sticky,
)
from sluice.client.metadata.cluster import TopicPartition


def member(
    name: str, topics: str = "t", owned: str = "", generation: int = -1, instance: str | None = None
) -> GroupMember:
    """`owned` as in "t0 t1"."""
    partitions = frozenset(TopicPartition(one[0], int(one[1:])) for one in owned.split())
    return GroupMember(name, instance, frozenset(topics), partitions, generation)


def shown(plan: Plan) -> dict[str, str]:
    return {name: " ".join(f"{topic}{index}" for topic, index in partitions) for name, partitions in plan.items()}


@pytest.mark.parametrize(
    ("members", "partitions", "expected"),
    [
        pytest.param(["a"], {"t": 2, "u": 0}, {"a": "t0 t1"}, id="one has all"),
        pytest.param(["a", "b"], {"t": 3, "u": 3}, {"a": "t0 t1 u0 u1", "b": "t2 u2"}, id="the first has one more"),
        pytest.param(["b", "a", "c"], {"t": 2}, {"a": "t0", "b": "t1", "c": ""}, id="too many have none"),
    ],
)
def test_range(members: list[str], partitions: dict[str, int], expected: dict[str, str]) -> None:
    assert shown(assign_range([member(name, "tu") for name in members], partitions)) == expected


def test_range_gives_only_what_is_wanted_and_instances_come_first() -> None:
    members = [member("a", "t"), member("b", "tu"), member("z", "t", instance="i")]
    assert shown(assign_range(members, {"t": 3, "u": 2})) == {"z": "t0", "a": "t1", "b": "t2 u0 u1"}


def test_round_robin_goes_through_all_topics() -> None:
    members = [member("a", "tu"), member("b", "tu")]
    assert shown(assign_round_robin(members, {"t": 3, "u": 3})) == {"a": "t0 t2 u1", "b": "t1 u0 u2"}


def test_round_robin_goes_past_who_does_not_want_a_topic() -> None:
    members = [member("a", "t"), member("b", "tu")]
    assert shown(assign_round_robin(members, {"t": 1, "u": 2})) == {"a": "t0", "b": "u0 u1"}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param([member("a"), member("b")], {"a": "t0 t2", "b": "t1 t3"}, id="at first it is even"),
        pytest.param(
            [member("a", owned="t1 t3", generation=1), member("b", owned="t0 t2", generation=1)],
            {"a": "t1 t3", "b": "t0 t2"},
            id="what is even stays",
        ),
        pytest.param(
            [member("a", owned="t0 t1 t2 t3", generation=1), member("b")],
            {"a": "t0 t1", "b": ""},
            id="what moves is given up first",
        ),
        pytest.param(
            [member("a", owned="t0 t1", generation=2), member("b", owned="t2 t3", generation=2), member("c")],
            {"a": "t0 t1", "b": "t2", "c": ""},
            id="no more moves than it takes",
        ),
        pytest.param(
            [member("a", owned="t0 t1", generation=1), member("b", owned="t0 t1 t2", generation=2)],
            {"a": "t3", "b": "t0 t1"},
            id="the newer generation has what two say they have",
        ),
    ],
)
def test_sticky(members: list[GroupMember], expected: dict[str, str]) -> None:
    assert shown(assign_sticky(members, {"t": 4})) == expected


@pytest.mark.parametrize("name", ASSIGNORS)
def test_nothing_is_given_twice(name: str) -> None:
    members = [member("a", "tu", "t0 u0", 1), member("b", "t", "t1", 1), member("c", "u")]
    plan = ASSIGNORS[name].assign(members, {"t": 5, "u": 4})
    given = [partition for partitions in plan.values() for partition in partitions]
    assert len(given) == len(set(given))
    assert all(partition.topic in one.topics for one in members for partition in plan[one.member_id])
