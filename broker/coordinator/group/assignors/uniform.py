"""The `uniform` assignor: every member gets as many partitions as any other, or one more, and keeps what it had where
that allows it. Follows Kafka's UniformAssignor and UniformHomogeneousAssignmentBuilder; where members subscribe to
different topics, uniform_heterogeneous.py.

By an example: A has 0 and 1, B has 2, of three partitions; C joins. Each may have one, so A gives up 1, and C gets it:
one partition moves, none goes from A to B. Of four partitions, one member may have two, and that is A, who has them
already: C would get the fourth.
"""

from collections.abc import Set
from itertools import islice

from . import uniform_heterogeneous
from .spec import Assignment, GroupSpec, MemberSpec

_TopicPartition = tuple[bytes, int]


def assign(group: GroupSpec) -> dict[str, Assignment]:
    """The partitions of all members."""
    if not group.members:
        return {}
    if not group.homogeneous:
        return uniform_heterogeneous.assign(group)
    subscribed = next(iter(group.members.values())).subscribed
    return _assign(group, subscribed) if subscribed else {}


def _assign(group: GroupSpec, subscribed: Set[bytes]) -> dict[str, Assignment]:
    counts = {topic: count for topic, count in group.partition_counts.items() if topic in subscribed}
    assigned = {
        (topic, partition)
        for member in group.members.values()
        for topic, partitions in member.assigned.items()
        for partition in partitions
    }
    unassigned = [
        (topic, partition)
        for topic, count in counts.items()
        for partition in range(count)
        if (topic, partition) not in assigned
    ]
    quota, extra = divmod(sum(counts.values()), len(group.members))
    target: dict[str, dict[bytes, set[int]]] = {}
    unfilled: dict[str, int] = {}  # who may have how many more
    for left, (member_id, member) in zip(range(len(group.members), 0, -1), group.members.items(), strict=True):
        has_extra = extra > 0
        target[member_id], surplus = _keep(member, subscribed, quota + has_extra)
        unassigned += surplus
        room = quota + has_extra - sum(map(len, target[member_id].values()))
        if room and has_extra and left > extra:
            # It has no use for the additional partition, so somebody who has one already may keep it; but the last
            # `extra` members have to take theirs.
            has_extra = False
            room -= 1
        if room:
            unfilled[member_id] = room
        extra -= has_extra
    _fill(target, unfilled, unassigned)
    return {
        member_id: {topic: frozenset(partitions) for topic, partitions in mine.items()}
        for member_id, mine in target.items()
    }


def _keep(
    member: MemberSpec, subscribed: Set[bytes], limit: int
) -> tuple[dict[bytes, set[int]], list[_TopicPartition]]:
    """What a member keeps of what it had, no more than `limit` partitions, and what it has to give up beyond that."""
    kept: dict[bytes, set[int]] = {}
    surplus: list[_TopicPartition] = []
    for topic, partitions in member.assigned.items():
        if topic not in subscribed:
            continue
        ordered = sorted(partitions)
        if limit:
            kept[topic] = set(ordered[:limit])
        surplus += [(topic, partition) for partition in ordered[limit:]]
        limit -= min(limit, len(ordered))
    return kept, surplus


def _fill(
    target: dict[str, dict[bytes, set[int]]], unfilled: dict[str, int], unassigned: list[_TopicPartition]
) -> None:
    rest = iter(unassigned)
    for member_id, room in unfilled.items():
        for topic, partition in islice(rest, room):
            target[member_id].setdefault(topic, set()).add(partition)
    assert next(rest, None) is None, "partitions were left unassigned"
