"""Kafka's RangeAssignor, RoundRobinAssignor and CooperativeStickyAssignor (KIP-429), for leaders of classic groups.

Members are ordered by instance id, then by member id. The sticky assignor withholds a partition until its owner has
revoked it; then the group rebalances again.

Different on purpose: racks are ignored; the sticky assignor moves single partitions until the plan is balanced, where
Kafka has a separate search for members with different topics.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

from sluice.client.metadata.cluster import TopicPartition


class GroupMember(NamedTuple):
    """A member as the leader sees it. `generation_id`: when it got the partitions that it owns."""

    member_id: str
    instance_id: str | None
    topics: frozenset[str]
    owned: frozenset[TopicPartition] = frozenset()
    generation_id: int = -1


Plan = dict[str, list[TopicPartition]]
# Assigns to members; the second argument is the number of partitions of each topic.
Assign = Callable[[Iterable[GroupMember], Mapping[str, int]], Plan]


# Runs on the leader before the assignment, for example to create topics. Returns partition counts that metadata may
# lack. If it raises RetriableException, the leader rejoins.
Prepare = Callable[[Sequence[GroupMember]], Awaitable[Mapping[str, int]]]


class Assignor(NamedTuple):
    """An assignment strategy. `is_cooperative`: members keep their partitions while they join."""

    name: str
    assign: Assign
    is_cooperative: bool = False
    prepare: Prepare | None = None


def _in_order(members: Iterable[GroupMember]) -> list[GroupMember]:
    return sorted(members, key=lambda one: (one.instance_id is None, one.instance_id or one.member_id))


def assign_range(members: Iterable[GroupMember], partitions: Mapping[str, int]) -> Plan:
    """Assign a range of each topic to each member; the first members get the remainder."""
    ordered = _in_order(members)
    plan: Plan = {member.member_id: [] for member in ordered}
    for topic in sorted(partitions):
        subscribed = [member for member in ordered if topic in member.topics]
        start = 0
        for place, member in enumerate(subscribed):
            size = partitions[topic] // len(subscribed) + (place < partitions[topic] % len(subscribed))
            plan[member.member_id] += [TopicPartition(topic, index) for index in range(start, start + size)]
            start += size
    return plan


def assign_round_robin(members: Iterable[GroupMember], partitions: Mapping[str, int]) -> Plan:
    """Deal partitions to members in turn, skipping members without the topic."""
    ordered = _in_order(members)
    plan: Plan = {member.member_id: [] for member in ordered}
    candidates = cycle(ordered)
    for partition in _all(partitions):
        if any(partition.topic in member.topics for member in ordered):
            member = next(member for member in candidates if partition.topic in member.topics)
            plan[member.member_id].append(partition)
    return plan


def assign_sticky(members: Iterable[GroupMember], partitions: Mapping[str, int]) -> Plan:
    """Balance with as few moves as possible; withhold partitions that still have another owner."""
    ordered = _in_order(members)
    all_partitions = set(_all(partitions))
    owners = _owners(ordered, all_partitions)
    plan: dict[str, set[TopicPartition]] = {member.member_id: set() for member in ordered}
    for partition, owner in owners.items():
        plan[owner].add(partition)
    for partition in sorted(all_partitions - owners.keys()):
        subscribed = [member.member_id for member in ordered if partition.topic in member.topics]
        if subscribed:
            plan[min(subscribed, key=lambda member: len(plan[member]))].add(partition)
    _even_out(plan, {member.member_id: member.topics for member in ordered})
    return {
        member: sorted(partition for partition in those if owners.get(partition, member) == member)
        for member, those in plan.items()
    }


def _all(partitions: Mapping[str, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for topic in sorted(partitions) for index in range(partitions[topic])]


def _owners(members: list[GroupMember], all_partitions: set[TopicPartition]) -> dict[TopicPartition, str]:
    """Return the current owners; of conflicting claims, that of the newest generation."""
    owners: dict[TopicPartition, str] = {}
    for member in sorted(members, key=lambda one: one.generation_id):
        for partition in member.owned & all_partitions:
            if partition.topic in member.topics:
                owners[partition] = member.member_id
    return owners


def _even_out(plan: dict[str, set[TopicPartition]], topics: Mapping[str, frozenset[str]]) -> None:
    while True:
        by_size = sorted(plan, key=lambda member: len(plan[member]))
        move = next(
            (
                (giver, taker, partition)
                for taker in by_size
                for giver in reversed(by_size)
                if len(plan[giver]) - len(plan[taker]) > 1
                for partition in sorted(plan[giver], reverse=True)
                if partition.topic in topics[taker]
            ),
            None,
        )
        if move is None:
            return
        giver, taker, partition = move
        plan[giver].remove(partition)
        plan[taker].add(partition)


ASSIGNORS = {
    assignor.name: assignor
    for assignor in (
        Assignor("range", assign_range),
        Assignor("roundrobin", assign_round_robin),
        Assignor("cooperative-sticky", assign_sticky, is_cooperative=True),
    )
}
