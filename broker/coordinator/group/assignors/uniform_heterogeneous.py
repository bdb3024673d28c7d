"""The `uniform` assignor for different subscriptions. Follows Kafka's UniformHeterogeneousAssignmentBuilder.

1. Members keep the partitions of topics that they still subscribe to.
2. Each topic's unassigned partitions go to the subscriber with the fewest partitions.
3. Each topic's partitions move from the subscriber with the most to the one with the fewest, until no topic can be
   balanced further: its subscribers differ by at most one, or those with more own none of this topic.

Topics are ordered by partitions per subscriber (most first), number of subscribers (fewest first), and id.
"""

from collections.abc import Iterable, Sequence

from .spec import Assignment, GroupSpec

# Balancing a topic may unbalance another one, so rounds repeat up to Kafka's limit.
_MAX_ROUNDS = 16


def assign(group: GroupSpec) -> dict[str, Assignment]:
    builder = _AssignmentBuilder(group)
    builder.assign_unassigned()
    builder.balance()
    return builder.target()


class _AssignmentBuilder:
    def __init__(self, group: GroupSpec) -> None:
        self._group = group
        self._subscribers: dict[bytes, list[int]] = {}
        for number, member in enumerate(group.members.values()):
            for topic in member.subscribed:
                self._subscribers.setdefault(topic, []).append(number)
        self._owners: dict[bytes, list[int | None]] = {
            topic: [None] * group.partition_counts[topic] for topic in self._subscribers
        }
        self._sizes = [0] * len(group.members)
        for number, member in enumerate(group.members.values()):
            for topic in member.subscribed:
                for partition in member.assigned.get(topic, ()):
                    self._reassign(topic, partition, number)

    def assign_unassigned(self) -> None:
        free = {
            topic: [partition for partition, owner in enumerate(owners) if owner is None]
            for topic, owners in self._owners.items()
        }
        for topic in self._ordered(topic for topic, partitions in free.items() if partitions):
            subscribers = _ByLoad(self._subscribers[topic], self._sizes)
            for partition in free[topic]:
                self._reassign(topic, partition, subscribers.next_least_loaded())

    def balance(self) -> None:
        topics = self._ordered(topic for topic, subscribers in self._subscribers.items() if len(subscribers) > 1)
        last_changed: bytes | None = None
        for _ in range(_MAX_ROUNDS):
            for topic in topics:
                if topic == last_changed:
                    return
                if self._balance_topic(topic) or last_changed is None:
                    last_changed = topic

    def target(self) -> dict[str, Assignment]:
        target: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in self._group.members}
        member_ids = list(target)
        for topic in self._group.partition_counts:
            for partition, owner in enumerate(self._owners.get(topic, ())):
                if owner is not None:
                    target[member_ids[owner]].setdefault(topic, set()).add(partition)
        return {
            member_id: {topic: frozenset(partitions) for topic, partitions in mine.items()}
            for member_id, mine in target.items()
        }

    def _balance_topic(self, topic: bytes) -> bool:
        subscribers = _ByLoad(self._subscribers[topic], self._sizes)
        if subscribers.imbalance <= 1:
            return False
        owned: dict[int | None, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic]):
            owned.setdefault(owner, []).append(partition)
        moved = False
        while not subscribers.is_balanced() and (source := subscribers.next_most_loaded()) is not None:
            if not owned.get(source):
                subscribers.exclude_most_loaded()
                continue
            partition = owned[source].pop()
            receiver = subscribers.next_least_loaded()
            if subscribers.is_balanced():
                break
            self._reassign(topic, partition, receiver)
            moved = True
        return moved

    def _reassign(self, topic: bytes, partition: int, receiver: int) -> None:
        owners = self._owners[topic]
        source = owners[partition]
        if source is not None:
            self._sizes[source] -= 1
        owners[partition] = receiver
        self._sizes[receiver] += 1

    def _ordered(self, topics: Iterable[bytes]) -> list[bytes]:
        def order(topic: bytes) -> tuple[float, int, int, int]:
            subscribers = len(self._subscribers[topic])
            # Ids are compared as in Java: as two signed numbers.
            high, low = int.from_bytes(topic[:8], signed=True), int.from_bytes(topic[8:], signed=True)
            return -self._group.partition_counts[topic] / subscribers, subscribers, high, low

        return sorted(topics, key=order)


class _ByLoad:
    """The subscribers of a topic by number of partitions.

    Sorted from least (left) to most (right) partitions. Two ranges of members with equal numbers grow towards each
    other:

                             ┌────┐
        partitions           │ <- │      right range: each member gives one, then the level falls
                      ┌──────┤    │      and the range grows by the members at that level
           ┌──────────┤      │    │
           │ ->       │      │    │      left range: each member receives one, then the level rises
           └──────────┴──────┴────┴─ members

    The caller then moves a partition, or excludes a giver that has none.
    """

    def __init__(self, members: Sequence[int], sizes: Sequence[int]) -> None:
        self._members = sorted(members, key=lambda member: (sizes[member], member))
        self._sizes = sizes  # shared, changes with each move
        least, most = sizes[self._members[0]], sizes[self._members[-1]]
        self.imbalance = most - least
        # Both ranges start empty, one level outside.
        self._left_end = 0
        self._left_level = least - 1
        self._next_left = 0
        self._right_start = self._right_end = len(members)
        self._right_level = most + 1
        self._next_right = len(members) - 1

    def is_balanced(self) -> bool:
        return self._right_level - self._left_level <= 1

    def next_least_loaded(self) -> int:
        if self._next_left >= self._left_end:
            self._left_level += 1
            while self._left_end < len(self._members) and self._size_at(self._left_end) == self._left_level:
                self._left_end += 1
            self._next_left = 0
        self._next_left += 1
        return self._members[self._next_left - 1]

    def next_most_loaded(self) -> int | None:
        if self._next_right < self._right_start:
            if self._right_end <= self._right_start and self._right_start > 0:
                # All were excluded: restart at the level of the next member.
                self._right_level = self._size_at(self._right_start - 1)
            else:
                self._right_level -= 1
            while self._right_start > 0 and self._size_at(self._right_start - 1) == self._right_level:
                self._right_start -= 1
            self._next_right = self._right_end - 1
        if self._next_right < 0:
            return None
        self._next_right -= 1
        return self._members[self._next_right + 1]

    def exclude_most_loaded(self) -> None:
        members, position, last = self._members, self._next_right + 1, self._right_end - 1
        members[position], members[last] = members[last], members[position]
        self._right_end = last

    def _size_at(self, position: int) -> int:
        return self._sizes[self._members[position]]
