"""Kafka's RangeAssignor (KIP-881), RoundRobinAssignor, and the list of all assignors, for leaders of classic groups.

Members are ordered by instance id, then by member id.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import cycle, groupby
from typing import NamedTuple

from sluice.client.metadata.cluster import TopicPartition

from .group_member import GroupMember, Plan, Racks, needs_racks
from .sticky_assignor import assign_cooperative, assign_sticky

# Assigns partitions to members, given the partition counts of topics and the racks of replicas.
Assign = Callable[[Sequence[GroupMember], Mapping[str, int], Racks], Plan]
# Runs on the leader before the assignment. Returns partition counts that metadata may lack. If it raises
# RetriableException, the leader rejoins.
Prepare = Callable[[Sequence[GroupMember]], Awaitable[Mapping[str, int]]]


class Assignor(NamedTuple):
    """An assignment strategy.

    `is_cooperative`: members keep their partitions while they join. `sends_previous`: members send the partitions that
    they had before they joined.
    """

    name: str
    assign: Assign
    is_cooperative: bool = False
    prepare: Prepare | None = None
    sends_previous: bool = False


def _in_order(members: Iterable[GroupMember]) -> list[GroupMember]:
    return sorted(members, key=lambda one: (one.instance_id is None, one.instance_id or one.member_id))


def assign_range(members: Iterable[GroupMember], partitions: Mapping[str, int], racks: Racks) -> Plan:
    """Assign a range of each topic to each member; the first members get the remainder.

    With racks, members first get partitions in their racks; topics with the same members and number of partitions
    remain co-partitioned.
    """
    ordered = _in_order(members)
    plan: Plan = {member.member_id: [] for member in ordered}
    topics = [
        _TopicRanges(topic, partitions[topic], [member for member in ordered if topic in member.topics], racks, plan)
        for topic in sorted(partitions)
    ]
    uses_racks = any(topic.needs_racks for topic in topics)
    if uses_racks:
        _assign_within_racks(topics)
    for topic in topics:
        topic.assign_ranges(lambda _member, _partition: True)
    return {name: sorted(those) for name, those in plan.items()} if uses_racks else plan


class _TopicRanges:
    """The unassigned partitions of a topic, and how many each subscriber still gets."""

    def __init__(self, name: str, count: int, members: list[GroupMember], racks: Racks, plan: Plan) -> None:
        self.members = members
        self.partitions = [TopicPartition(name, index) for index in range(count)]
        of_members = [member.rack for member in members if member.rack]
        self.racks = {one: racks.get(one, frozenset()) for one in self.partitions} if of_members else {}
        self.needs_racks = needs_racks(of_members, self.racks)
        self._plan = plan
        self._unassigned = list(self.partitions)
        self._assigned = {member.member_id: 0 for member in members}
        self._least, self._larger = divmod(count, len(members)) if members else (0, 0)

    def matches(self, member: GroupMember, partition: TopicPartition) -> bool:
        return not member.rack or member.rack in self.racks.get(partition, ())

    def most(self, member: GroupMember) -> int:
        return max(0, self._least + (self._larger > 0) - self._assigned[member.member_id])

    def assign(self, member: GroupMember, partitions: Sequence[TopicPartition]) -> None:
        self._plan[member.member_id] += partitions
        self._assigned[member.member_id] += len(partitions)
        if partitions and self._assigned[member.member_id] > self._least:
            self._larger -= 1
        self._unassigned = [one for one in self._unassigned if one not in partitions]

    def assign_ranges(self, may_assign: Callable[[GroupMember, TopicPartition], bool]) -> None:
        for member in self.members:
            allowed = [one for one in self._unassigned if may_assign(member, one)]
            self.assign(member, allowed[: self.most(member)])


def _assign_within_racks(topics: Iterable[_TopicRanges]) -> None:
    def subscribers_and_size(topic: _TopicRanges) -> tuple[list[str], int]:
        return [member.member_id for member in topic.members], len(topic.racks)

    for _, found in groupby(sorted(topics, key=subscribers_and_size), subscribers_and_size):
        alike = list(found)
        if len(alike) > 1:
            _assign_co_partitioned(alike)
        elif alike[0].needs_racks:
            alike[0].assign_ranges(alike[0].matches)


def _assign_co_partitioned(topics: Sequence[_TopicRanges]) -> None:
    """Assign partitions of one index in all topics to a member in a rack of each."""
    for same_index in zip(*(topic.racks for topic in topics), strict=True):
        for member in topics[0].members:
            pairs = list(zip(topics, same_index, strict=True))
            if all(topic.most(member) and topic.matches(member, partition) for topic, partition in pairs):
                for topic, partition in pairs:
                    topic.assign(member, [partition])
                break


def assign_round_robin(members: Iterable[GroupMember], partitions: Mapping[str, int], _racks: Racks) -> Plan:
    """Deal partitions to members in turn, skipping members without the topic."""
    ordered = _in_order(members)
    plan: Plan = {member.member_id: [] for member in ordered}
    candidates = cycle(ordered)
    for partition in _all(partitions):
        if any(partition.topic in member.topics for member in ordered):
            member = next(member for member in candidates if partition.topic in member.topics)
            plan[member.member_id].append(partition)
    return plan


def _all(partitions: Mapping[str, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for topic in sorted(partitions) for index in range(partitions[topic])]


ASSIGNORS = {
    assignor.name: assignor
    for assignor in (
        Assignor("range", assign_range),
        Assignor("roundrobin", assign_round_robin),
        Assignor("sticky", assign_sticky, sends_previous=True),
        Assignor("cooperative-sticky", assign_cooperative, is_cooperative=True),
    )
}
