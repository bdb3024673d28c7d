"""The `range` assignor. Follows Kafka's RangeAssignor.

Each subscriber of a topic gets a range of consecutive partitions; the first subscribers get the remainder, one each.
Members at the same position get the same partitions of topics of equal size, as joins need.

Static members come first, ordered by instance id, so they keep their ranges; the others follow by member id.
"""

from collections import Counter
from itertools import pairwise

from .spec import Assignment, GroupSpec, MemberSpec


def assign(group: GroupSpec) -> dict[str, Assignment]:
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
    """Return the ranges of one topic in reverse order."""
    quota, extra = divmod(partitions, members)
    ends = [quota * number + min(extra, number) for number in range(members + 1)]
    return [range(start, end) for start, end in pairwise(ends)][::-1]
