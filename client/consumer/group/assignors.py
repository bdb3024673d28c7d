"""How the leader of a classic group divides partitions among members: Kafka's RangeAssignor, RoundRobinAssignor and
CooperativeStickyAssignor (KIP-429).

Members are taken in the order of their instance ids, then of their member ids. The sticky one lets everybody keep what
they have, as far as that is even, and gives nothing away that another member still has: that one gives it up first, and
the group rebalances again.

Different on purpose: racks are not looked at; "sticky" moves as little as evenness asks for, one partition at a time,
where Kafka has a search of its own for members with different topics.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

from sluice.client.metadata.cluster import TopicPartition


class GroupMember(NamedTuple):
    """What the leader knows of a member. `generation_id`: in which it got what it owns."""

    member_id: str
    instance_id: str | None
    topics: frozenset[str]
    owned: frozenset[TopicPartition] = frozenset()
    generation_id: int = -1


Plan = dict[str, list[TopicPartition]]
# Members, and how many partitions each topic has.
Assign = Callable[[Iterable[GroupMember], Mapping[str, int]], Plan]


# What the leader sees to before it assigns, such as topics to make; returns how many partitions topics have of which
# metadata may not tell yet. What is worth another attempt (RetriableException) makes the leader join anew.
Prepare = Callable[[Sequence[GroupMember]], Awaitable[Mapping[str, int]]]


class Assignor(NamedTuple):
    """A way to assign. `is_cooperative`: members keep what they have while they join."""

    name: str
    assign: Assign
    is_cooperative: bool = False
    prepare: Prepare | None = None


def _in_order(members: Iterable[GroupMember]) -> list[GroupMember]:
    return sorted(members, key=lambda one: (one.instance_id is None, one.instance_id or one.member_id))


def assign_range(members: Iterable[GroupMember], partitions: Mapping[str, int]) -> Plan:
    """Of each topic a range for each member; the first ones have one more where it does not come out even."""
    ordered = _in_order(members)
    plan: Plan = {member.member_id: [] for member in ordered}
    for topic in sorted(partitions):
        wanting = [member for member in ordered if topic in member.topics]
        start = 0
        for place, member in enumerate(wanting):
            size = partitions[topic] // len(wanting) + (place < partitions[topic] % len(wanting))
            plan[member.member_id] += [TopicPartition(topic, index) for index in range(start, start + size)]
            start += size
    return plan


def assign_round_robin(members: Iterable[GroupMember], partitions: Mapping[str, int]) -> Plan:
    """All partitions in turn to all members, past those that do not want the topic."""
    ordered = _in_order(members)
    plan: Plan = {member.member_id: [] for member in ordered}
    candidates = cycle(ordered)
    for partition in _all(partitions):
        if any(partition.topic in member.topics for member in ordered):
            member = next(member for member in candidates if partition.topic in member.topics)
            plan[member.member_id].append(partition)
    return plan


def assign_sticky(members: Iterable[GroupMember], partitions: Mapping[str, int]) -> Plan:
    """As even as can be, with as little moved as that takes; what moves is given to nobody yet."""
    ordered = _in_order(members)
    everything = set(_all(partitions))
    owners = _owners(ordered, everything)
    plan: dict[str, set[TopicPartition]] = {member.member_id: set() for member in ordered}
    for partition, owner in owners.items():
        plan[owner].add(partition)
    for partition in sorted(everything - owners.keys()):
        wanting = [member.member_id for member in ordered if partition.topic in member.topics]
        if wanting:
            plan[min(wanting, key=lambda member: len(plan[member]))].add(partition)
    _even_out(plan, {member.member_id: member.topics for member in ordered})
    return {
        member: sorted(partition for partition in those if owners.get(partition, member) == member)
        for member, those in plan.items()
    }


def _all(partitions: Mapping[str, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for topic in sorted(partitions) for index in range(partitions[topic])]


def _owners(members: list[GroupMember], everything: set[TopicPartition]) -> dict[TopicPartition, str]:
    """Who has what now; of several that say so, the one of the newest generation."""
    owners: dict[TopicPartition, str] = {}
    for member in sorted(members, key=lambda one: one.generation_id):
        for partition in member.owned & everything:
            if partition.topic in member.topics:
                owners[partition] = member.member_id
    return owners


def _even_out(plan: dict[str, set[TopicPartition]], topics: Mapping[str, frozenset[str]]) -> None:
    """Moves partitions from who has at least two more than another that wants them."""
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
