"""Partition assignors, also compared with Kafka's."""

from pathlib import Path

import pytest

from sluice.client.consumer.group.assignors import ASSIGNORS, assign_range, assign_round_robin
from sluice.client.consumer.group.group_member import GroupMember, Plan, Racks
from sluice.client.consumer.group.sticky_assignor import assign_cooperative
from sluice.client.metadata.cluster import TopicPartition


def member(
    name: str, topics: str = "t", owned: str = "", generation: int = -1, instance: str | None = None
) -> GroupMember:
    """Return a group member; `owned` has the form "t0 t1"."""
    return GroupMember(name, instance, frozenset(topics), partitions_of(owned), generation)


def partitions_of(text: str) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(one[0], int(one[1:])) for one in text.split())


def shown(plan: Plan) -> dict[str, str]:
    return {name: " ".join(f"{topic}{index}" for topic, index in partitions) for name, partitions in plan.items()}


RANGE = {
    "one member has all": (["a"], {"t": 2, "u": 0}, {"a": "t0 t1"}),
    "the first member has one more": (["a", "b"], {"t": 3, "u": 3}, {"a": "t0 t1 u0 u1", "b": "t2 u2"}),
    "surplus members have none": (["b", "a", "c"], {"t": 2}, {"a": "t0", "b": "t1", "c": ""}),
}


@pytest.mark.parametrize(("members", "partitions", "expected"), RANGE.values(), ids=RANGE)
def test_range(members: list[str], partitions: dict[str, int], expected: dict[str, str]) -> None:
    assert shown(assign_range([member(name, "tu") for name in members], partitions, {})) == expected


def test_range_skips_unsubscribed_topics_and_orders_static_members_first() -> None:
    members = [member("a", "t"), member("b", "tu"), member("z", "t", instance="i")]
    assert shown(assign_range(members, {"t": 3, "u": 2}, {})) == {"z": "t0", "a": "t1", "b": "t2 u0 u1"}


def test_round_robin_runs_across_all_topics() -> None:
    members = [member("a", "tu"), member("b", "tu")]
    assert shown(assign_round_robin(members, {"t": 3, "u": 3}, {})) == {"a": "t0 t2 u1", "b": "t1 u0 u2"}


def test_round_robin_skips_members_without_a_subscription() -> None:
    members = [member("a", "t"), member("b", "tu")]
    assert shown(assign_round_robin(members, {"t": 1, "u": 2}, {})) == {"a": "t0", "b": "u0 u1"}


STICKY = {
    "initially balanced": ([member("a"), member("b")], {"a": "t0 t2", "b": "t1 t3"}),
    "a balanced assignment is kept": (
        [member("a", owned="t1 t3", generation=1), member("b", owned="t0 t2", generation=1)],
        {"a": "t1 t3", "b": "t0 t2"},
    ),
    "a moving partition is first revoked": (
        [member("a", owned="t0 t1 t2 t3", generation=1), member("b")],
        {"a": "t0 t1", "b": ""},
    ),
    "as few moves as necessary": (
        [member("a", owned="t0 t1", generation=2), member("b", owned="t2 t3", generation=2), member("c")],
        {"a": "t0 t1", "b": "t2", "c": ""},
    ),
    "the newer generation wins a doubly owned partition": (
        [member("a", owned="t0 t1", generation=1), member("b", owned="t0 t1 t2", generation=2)],
        {"a": "t3", "b": "t0 t1"},
    ),
}


@pytest.mark.parametrize(("members", "expected"), STICKY.values(), ids=STICKY)
def test_sticky(members: list[GroupMember], expected: dict[str, str]) -> None:
    assert shown(assign_cooperative(members, {"t": 4}, {})) == expected


@pytest.mark.parametrize("name", ASSIGNORS)
def test_no_partition_is_assigned_twice(name: str) -> None:
    members = [member("a", "tu", "t0 u0", 1), member("b", "t", "t1", 1), member("c", "u")]
    plan = ASSIGNORS[name].assign(members, {"t": 5, "u": 4}, {})
    given = [partition for partitions in plan.values() for partition in partitions]
    assert len(given) == len(set(given))
    assert all(partition.topic in one.topics for one in members for partition in plan[one.member_id])


def recorded() -> list[str]:
    lines = (Path(__file__).parent / "golden" / "kafka_assignments.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("line", recorded())
def test_assignment_with_racks_is_that_of_kafka(line: str) -> None:
    case, _, expected = line.partition(" -> ")
    name, topics, given = case.split(";")
    by_topic = {topic: racks.split("|") for topic, _, racks in (one.partition("=") for one in topics.split())}
    racks: Racks = {
        TopicPartition(topic, index): frozenset(text.split("+"))
        for topic, texts in by_topic.items()
        for index, text in enumerate(texts)
    }
    members = []
    for one in given.split():
        member_id, names, owned, generation, rack, instance = one.split(":")
        had = " ".join(owned.split("+"))
        members.append(
            member(member_id, names.replace("+", ""), had, int(generation), instance or None)._replace(rack=rack)
        )
    plan = ASSIGNORS[name].assign(members, {topic: len(texts) for topic, texts in by_topic.items()}, racks)
    parsed = (text.partition(":") for text in expected.split(" "))
    assert {name: frozenset(those) for name, those in plan.items()} == {
        name: partitions_of(" ".join(those.split("+"))) for name, _, those in parsed
    }
