"""Kafka's AbstractStickyAssignor (KIP-54, KIP-341, KIP-881): balance, then matching racks, then few moves.

Members with equal subscriptions keep up to their quota of owned partitions, and get more in turn. Otherwise owned
partitions are kept, the others go to the member with the fewest, and partitions move while that improves the balance.
In both cases partitions are first assigned within racks. Members are processed by id; in Kafka, in the order of a hash
table.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from sluice.client.metadata.cluster import TopicPartition

from .group_member import GroupMember, Plan, Racks, needs_racks


def assign_sticky(members: Sequence[GroupMember], partitions: Mapping[str, int], racks: Racks) -> Plan:
    """Assign with as few moves as the balance permits."""
    return _assigned(members, partitions, racks)[0]


def assign_cooperative(members: Sequence[GroupMember], partitions: Mapping[str, int], racks: Racks) -> Plan:
    """Assign likewise, but withhold partitions until their owners have revoked them (KIP-429)."""
    plan, moving = _assigned(members, partitions, racks)
    return {name: [one for one in those if moving.get(one) != name] for name, those in plan.items()}


def _assigned(
    members: Sequence[GroupMember], partitions: Mapping[str, int], racks: Racks
) -> tuple[Plan, dict[TopicPartition, str]]:
    """Return the plan, and the new owners of partitions that move or are contested."""
    members = sorted(members, key=lambda member: member.member_id)
    counts = {topic: count for topic, count in partitions.items() if count}
    owned, contested = _owned(members, counts)
    matcher = _RackMatcher(members, counts, racks)
    if len({member.topics for member in members}) == 1:
        equal = _EqualSubscriptions(counts, owned, contested, matcher)
        plan, moving = equal.build(), equal.moving
    else:
        plan = _DifferentSubscriptions(members, counts, owned, matcher).build()
        claims = {member.member_id: member.owned for member in members}
        claimed = frozenset[TopicPartition]().union(*claims.values())
        moving = {one: name for name in plan for one in plan[name] if one in claimed - claims[name]}
    return {name: sorted(those) for name, those in plan.items()}, moving


def _all(counts: Mapping[str, int], topics: Sequence[str]) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for topic in topics for index in range(counts[topic])]


def _owned(
    members: Sequence[GroupMember], counts: Mapping[str, int]
) -> tuple[dict[str, list[TopicPartition]], set[TopicPartition]]:
    """Return the partitions of each member by the newest claims, and those claimed twice in one generation."""
    owned: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    contested: set[TopicPartition] = set()
    owners: dict[TopicPartition, GroupMember] = {}
    for member in members:
        for partition in sorted(member.owned):
            if partition.topic not in counts:
                continue
            other = owners.get(partition)
            if other is not None:
                if member.generation_id < other.generation_id:
                    continue
                if partition in owned[other.member_id]:
                    owned[other.member_id].remove(partition)
            owners[partition] = member
            if other is not None and member.generation_id == other.generation_id:
                contested.add(partition)
            else:
                owned[member.member_id].append(partition)
    return owned, contested


class _RackMatcher:
    def __init__(self, members: Sequence[GroupMember], counts: Mapping[str, int], racks: Racks) -> None:
        of_members = {member.member_id: member.rack for member in members if member.rack}
        relevant = {one: racks.get(one, frozenset()) for one in _all(counts, list(counts))} if of_members else {}
        self.is_active = needs_racks(of_members.values(), relevant)
        self.of_members: Mapping[str, str] = of_members if self.is_active else {}
        self._of_partitions: Racks = relevant if self.is_active else {}

    def matches(self, member: str, partition: TopicPartition) -> bool:
        rack = self.of_members.get(member)
        return rack is None or rack in self._of_partitions.get(partition, ())

    def is_in_rack(self, member: str, partition: TopicPartition) -> bool:
        return member in self.of_members and self.matches(member, partition)

    def by_candidates(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        if not self.is_active:
            return partitions
        in_rack = list(self.of_members.values())
        return sorted(partitions, key=lambda one: sum(map(in_rack.count, self._of_partitions[one])))

    def next_in_rack(self, partition: TopicPartition, members: Sequence[str], start: int) -> int | None:
        """Return the index of the next member in a rack of the partition, from `start`."""
        indexes = (*range(start, len(members)), *range(start))
        return next((index for index in indexes if self.is_in_rack(members[index], partition)), None)


class _EqualSubscriptions:
    """Kafka's ConstrainedAssignmentBuilder: all members get the minimum, some of them one more."""

    def __init__(
        self,
        counts: Mapping[str, int],
        owned: Mapping[str, list[TopicPartition]],
        contested: set[TopicPartition],
        matcher: _RackMatcher,
    ) -> None:
        self._all = _all(counts, sorted(counts))
        self._owned = owned
        self._contested = contested
        self._matcher = matcher
        self._least, self._larger = divmod(len(self._all), len(owned))  # the number that may still get one more
        self._most = self._least + bool(self._larger)
        self._below: list[str] = []
        self._at_least: deque[str] = deque()  # members with the minimum, which may get one more
        self._revoked: dict[TopicPartition, str] = {}
        self._plan: Plan = {name: [] for name in owned}
        self.moving: dict[TopicPartition, str] = {}

    def build(self) -> Plan:
        for name in self._owned:
            self._keep_owned(name)
        assigned = {one for those in self._plan.values() for one in those}
        self._below.sort()
        self._at_least = deque(sorted(self._at_least))
        rest = self._matcher.by_candidates([one for one in self._all if one not in assigned])
        if self._matcher.is_active:
            rest = self._assign_in_racks(rest)
        self._assign_in_turn(rest)
        return self._plan

    def _keep_owned(self, name: str) -> None:
        owned = []
        for partition in sorted(self._owned[name], key=lambda one: (one.partition, one.topic)):
            if not self._matcher.matches(name, partition):
                self._revoked[partition] = name
            elif partition not in self._contested:
                owned.append(partition)
        kept = self._least
        if len(owned) < self._least:
            self._below.append(name)
        elif len(owned) >= self._most and self._larger:
            kept = self._most
            self._count_larger()
        elif self._larger:
            self._at_least.append(name)
        self._plan[name] += owned[:kept]
        self._revoked.update(dict.fromkeys(owned[kept:], name))

    def _count_larger(self) -> None:
        self._larger -= 1
        if not self._larger:
            self._at_least.clear()

    def _assign_in_racks(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions that no member in a rack can get."""
        others, start = [], 0
        for partition in partitions:
            index = self._matcher.next_in_rack(partition, self._below, start)
            if index is not None:
                name = self._below[index]
                if self._give(partition, name) >= self._least:
                    del self._below[index]
                    if self._larger:
                        self._at_least.append(name)
                else:
                    index += 1
                start = index % len(self._below) if self._below else 0
                continue
            index = self._matcher.next_in_rack(partition, self._at_least, 0)
            if index is None:
                others.append(partition)
                continue
            name = self._at_least[index]
            del self._at_least[index]
            self._count_larger()
            self._give(partition, name)
        return others

    def _assign_in_turn(self, partitions: Sequence[TopicPartition]) -> None:
        index = 0
        for partition in partitions:
            if not self._below:
                self._give(partition, self._at_least.popleft())
                continue
            index %= len(self._below)
            name = self._below[index]
            if self._give(partition, name) == self._least:
                del self._below[index]
                self._at_least.append(name)
                if index == len(self._below):
                    index = 0
            else:
                index += 1

    def _give(self, partition: TopicPartition, name: str) -> int:
        self._plan[name].append(partition)
        if self._revoked.get(partition, name) != name or partition in self._contested:
            self.moving[partition] = name
        return len(self._plan[name])


class _Claim(NamedTuple):
    member_id: str
    generation_id: int


class _Movements:
    """The moves so far, to prevent members from exchanging partitions of a topic."""

    def __init__(self) -> None:
        self._moves: dict[TopicPartition, tuple[str, str]] = {}

    def add(self, partition: TopicPartition, source: str, target: str) -> None:
        first = self._moves.pop(partition, (source, target))[0]
        if first != target:
            self._moves[partition] = (first, target)

    def replacement(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """Return the partition to move instead: one of the topic that moved the opposite way, if any."""
        reverse = (target, self._moves.get(partition, (source, target))[0])
        found = (one for one, move in self._moves.items() if move == reverse and one.topic == partition.topic)
        return next(found, partition)


class _DifferentSubscriptions:
    """Kafka's GeneralAssignmentBuilder: move partitions until no move improves the balance."""

    def __init__(
        self,
        members: Sequence[GroupMember],
        counts: Mapping[str, int],
        owned: dict[str, list[TopicPartition]],
        matcher: _RackMatcher,
    ) -> None:
        self._counts = counts
        self._matcher = matcher
        self._plan = owned
        self._topics = {member.member_id: [one for one in sorted(member.topics) if one in counts] for member in members}
        self._subscribers = {topic: [name for name in self._topics if topic in self._topics[name]] for topic in counts}
        self._owner = {one: name for name, those in owned.items() for one in those}
        self._all = _all(counts, sorted(counts, key=lambda topic: (len(self._subscribers[topic]), topic)))
        self._movements = _Movements()
        self._earlier = _earlier_claims(members)
        self._by_size: list[tuple[int, str]] = []

    def build(self) -> Plan:
        is_revoking = self._revoke()
        assigned = {one for those in self._plan.values() for one in those}
        self._by_size = sorted((len(those), name) for name, those in self._plan.items())
        is_first = not assigned
        rest = [one for one in self._all if one not in assigned]
        unassigned = rest
        if self._matcher.is_active:
            unassigned = [one for one in rest if not self._assign(one, self._matcher.matches)]
        for partition in unassigned:
            self._assign(partition, lambda _name, _partition: True)
        fixed = {name: self._plan[name] for name in self._topics if not self._can_change(name)}
        for name in fixed:
            self._by_size.remove((len(self._plan[name]), name))
            del self._plan[name]
        before = {name: list(those) for name, those in self._plan.items()}
        if not is_revoking:
            self._balance([one for one in rest if self._is_movable(one)])
        has_moved = self._balance([one for one in self._all if self._is_movable(one)])
        if has_moved and not is_first and _imbalance(self._plan) >= _imbalance(before):
            self._plan = before
        return self._plan | fixed

    def _revoke(self) -> bool:
        is_revoking = False
        for name, those in self._plan.items():
            kept = [one for one in those if one.topic in self._topics[name] and self._matcher.matches(name, one)]
            is_revoking |= len(kept) < len(those)
            self._plan[name] = kept
        return is_revoking

    def _assign(self, partition: TopicPartition, may_assign: Callable[[str, TopicPartition], bool]) -> bool:
        for _, name in self._by_size:
            if partition.topic in self._topics[name] and may_assign(name, partition):
                self._change(name, lambda those: those.append(partition))
                self._owner[partition] = name
                return True
        return False

    def _change(self, name: str, change: Callable[[list[TopicPartition]], None]) -> None:
        those = self._plan[name]
        del self._by_size[bisect_left(self._by_size, (len(those), name))]
        change(those)
        insort(self._by_size, (len(those), name))

    def _is_movable(self, partition: TopicPartition) -> bool:
        return len(self._subscribers[partition.topic]) > 1

    def _can_change(self, name: str) -> bool:
        return len(self._plan[name]) < self._most_of(name) or any(map(self._is_movable, self._plan[name]))

    def _most_of(self, name: str) -> int:
        return sum(self._counts[topic] for topic in self._topics[name])

    def _balance(self, partitions: Sequence[TopicPartition]) -> bool:
        """Move partitions until no move improves the plan; return whether any moved."""
        has_moved = False
        while True:
            moves_again = False
            for partition in partitions:
                if self._is_balanced():
                    break
                target = self._better_owner(partition)
                if target is not None:
                    self._move(partition, target)
                    has_moved = moves_again = True
            if not moves_again:
                return has_moved

    def _is_balanced(self) -> bool:
        if self._by_size[0][0] >= self._by_size[-1][0] - 1:
            return True
        sizes = {name: size for size, name in self._by_size}
        return not any(
            size + 1 < sizes[self._owner[TopicPartition(topic, index)]]
            for size, name in self._by_size
            if size < self._most_of(name)
            for topic in self._topics[name]
            for index in range(self._counts[topic])
        )

    def _better_owner(self, partition: TopicPartition) -> str | None:
        owner = self._owner[partition]
        size = len(self._plan[owner])
        claim = self._earlier.get(partition)
        earlier = None if claim is None else claim.member_id
        if earlier in self._subscribers[partition.topic] and size > len(self._plan[earlier]) + 1:
            return earlier
        if not any(size > len(self._plan[name]) + 1 for name in self._subscribers[partition.topic]):
            return None
        return next(name for _, name in self._by_size if partition.topic in self._topics[name])

    def _move(self, partition: TopicPartition, target: str) -> None:
        moved = self._movements.replacement(partition, self._owner[partition], target)
        source = self._owner[moved]
        self._movements.add(moved, source, target)
        self._change(source, lambda those: those.remove(moved))
        self._change(target, lambda those: those.append(moved))
        self._owner[moved] = target


def _earlier_claims(members: Sequence[GroupMember]) -> dict[TopicPartition, _Claim]:
    """Return the newest claim on each partition before the current generation."""
    newest = max(member.generation_id for member in members)
    claims: dict[TopicPartition, _Claim] = {}
    for member in members:
        if member.generation_id < newest:
            for partition in member.owned:
                claim = claims.get(partition)
                if claim is None or member.generation_id > claim.generation_id:
                    claims[partition] = _Claim(member.member_id, member.generation_id)
    return claims


def _imbalance(plan: Plan) -> int:
    return sum(abs(len(one) - len(other)) for one, other in combinations(plan.values(), 2))
