"""The `range` assignor: of each topic, every subscriber gets one run of partitions, the first ones one more where the
numbers do not divide. So members of one place in the order get the same partitions of topics of one size, which joins
need (co-partitioning). Follows Kafka's RangeAssignor.

Members stand in the order of their instance ids, then, those without one, of their member ids: static members keep
their runs. What was assigned before does not count. Nothing here depends on hashes: results are Kafka's.
"""

from collections import Counter
from itertools import pairwise

from .spec import Assignment, GroupSpec, MemberSpec


def assign(group: GroupSpec) -> dict[str, Assignment]:
    """The runs of all members."""
    subscribers = Counter(topic for member in group.members.values() for topic in member.subscribed)
    runs = {topic: _runs(group.partition_counts[topic], count) for topic, count in subscribers.items()}
    target: dict[str, Assignment] = {}
    for member_id, member in sorted(group.members.items(), key=_order):
        mine = {topic: runs[topic].pop() for topic in group.partition_counts if topic in member.subscribed}
        target[member_id] = {topic: frozenset(run) for topic, run in mine.items() if run}
    return target


def _order(item: tuple[str, MemberSpec]) -> tuple[bool, str]:
    member_id, member = item
    return member.instance_id is None, member_id if member.instance_id is None else member.instance_id


def _runs(partitions: int, members: int) -> list[range]:
    """The runs of one topic, the first member's last."""
    quota, extra = divmod(partitions, members)
    ends = [quota * number + min(extra, number) for number in range(members + 1)]
    return [range(start, end) for start, end in pairwise(ends)][::-1]
