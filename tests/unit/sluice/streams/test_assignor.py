"""Task assignment: complete, balanced and sticky."""

from collections import Counter
from collections.abc import Mapping

from sluice.client.consumer.group.group_member import GroupMember, Plan
from sluice.client.metadata.cluster import TopicPartition
from sluice.streams.assignor import assign_tasks
from sluice.streams.topology import Topology
from tests.support.streaming import split, word_count

TOPICS = frozenset({"lines", "app-words-repartition"})
COUNTS = {"lines": 4, "app-words-repartition": 4}


def member(name: str, *owned: TopicPartition, topics: frozenset[str] = TOPICS) -> GroupMember:
    return GroupMember(name, None, topics, frozenset(owned), 1 if owned else -1)


def plan_of(*members: GroupMember, topology: Topology | None = None, counts: Mapping[str, int] = COUNTS) -> Plan:
    return assign_tasks((topology or word_count()).build("app").subtopologies, members, counts)


def test_tasks_are_balanced() -> None:
    plan = plan_of(member("a"), member("b"), member("c"))
    assert sorted(map(len, plan.values())) == [2, 3, 3]
    given = [partition for theirs in plan.values() for partition in theirs]
    assert sorted(given) == sorted(TopicPartition(topic, index) for topic in TOPICS for index in range(4))


def test_task_partitions_stay_together_and_the_largest_topic_sets_the_count() -> None:
    topology = Topology()
    topology.source("orders").process(split, topology.source("payments")).sink("out")
    members = [member(name, topics=frozenset({"orders", "payments"})) for name in "ab"]
    plan = plan_of(*members, topology=topology, counts={"orders": 3, "payments": 2})
    for theirs in plan.values():
        for index in {partition.partition for partition in theirs}:
            topics = {partition.topic for partition in theirs if partition.partition == index}
            assert topics == ({"orders"} if index == 2 else {"orders", "payments"})


def test_member_revokes_a_task_before_another_receives_it() -> None:
    everything = [TopicPartition(topic, index) for topic in sorted(TOPICS) for index in range(4)]
    plan = plan_of(member("a", *everything), member("b"))
    assert len(plan["a"]) == 4
    assert set(plan["a"]) < set(everything)
    assert plan["b"] == [], "a's task is not assigned to b before a revokes it"
    again = plan_of(member("a", *plan["a"]), member("b"))
    assert set(again["a"]) == set(plan["a"])
    assert set(again["b"]) == set(everything) - set(plan["a"])


def parts_of(partitions: list[TopicPartition]) -> Counter[str]:
    return Counter(partition.topic for partition in partitions)


def test_tasks_of_one_subtopology_are_spread_initially_and_when_moved() -> None:
    fresh = plan_of(member("a"), member("b"))
    assert parts_of(fresh["a"]) == parts_of(fresh["b"]) == dict.fromkeys(TOPICS, 2)
    everything = [*fresh["a"], *fresh["b"]]
    moving = plan_of(member("a", *everything), member("b"))
    assert parts_of(moving["a"]) == dict.fromkeys(TOPICS, 2)


def test_newer_generation_keeps_a_task_claimed_twice() -> None:
    task = TopicPartition("lines", 0)
    old, new = member("a", task), member("b", task)._replace(generation_id=2)
    assert task in plan_of(old, new)["b"]


def test_unsubscribed_partition_is_not_assigned() -> None:
    plan = plan_of(member("a", TopicPartition("old", 0), TopicPartition("lines", 9)))
    assert len(plan["a"]) == 8


def test_missing_topic_creates_no_task() -> None:
    assert plan_of(member("a"), counts={"lines": 1}) == {"a": [TopicPartition("lines", 0)]}
