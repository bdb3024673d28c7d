"""The `uniform` assignor for equal subscriptions.

Follows Kafka's UniformAssignor and UniformHomogeneousAssignmentBuilder. Members keep their partitions, except where
counts would differ by more than one. Example: of three partitions, A has 0 and 1, B has 2. If C joins, 1 moves from A
to C.
"""

from collections.abc import Set
from itertools import islice

from . import uniform_heterogeneous
from .spec import Assignment, GroupSpec, MemberSpec

_TopicPartition = tuple[bytes, int]


def assign(group: GroupSpec) -> dict[str, Assignment]:
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
    unfilled: dict[str, int] = {}  # member id -> number of missing partitions
    for remaining, (member_id, member) in zip(range(len(group.members), 0, -1), group.members.items(), strict=True):
        has_extra = extra > 0
        target[member_id], surplus = _keep(member, subscribed, quota + has_extra)
        unassigned += surplus
        missing = quota + has_extra - sum(map(len, target[member_id].values()))
        if missing and has_extra and remaining > extra:
            # Leave the additional partition to a member that may already have one; but the last `extra` members must
            # accept theirs.
            has_extra = False
            missing -= 1
        if missing:
            unfilled[member_id] = missing
        extra -= has_extra
    _fill(target, unfilled, unassigned)
    return {
        member_id: {topic: frozenset(partitions) for topic, partitions in mine.items()}
        for member_id, mine in target.items()
    }


def _keep(
    member: MemberSpec, subscribed: Set[bytes], limit: int
) -> tuple[dict[bytes, set[int]], list[_TopicPartition]]:
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
    for member_id, missing in unfilled.items():
        for topic, partition in islice(rest, missing):
            target[member_id].setdefault(topic, set()).add(partition)
    assert next(rest, None) is None, "partitions remain unassigned"
