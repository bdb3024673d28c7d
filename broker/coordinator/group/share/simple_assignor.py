"""The `simple` assignor of share groups. Follows Kafka's SimpleAssignor and its assignment builders.

Each partition is shared by S members: the number of members divided by that of partitions, rounded up. The members
divide these S x partitions evenly and keep what they have where possible. Example: with 2 partitions and 3 members, S
is 2, and the members have 2, 1 and 1 partitions.

If all members have the same subscription, the partitions of all topics are shared together, else topic by topic.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from sluice.broker.coordinator.group.assignors.spec import Assignment, MemberSpec

_TopicPartition = tuple[bytes, int]

NAME = "simple"


def assign(
    members: Mapping[str, MemberSpec], assignable: Mapping[bytes, Sequence[int]], *, homogeneous: bool
) -> dict[str, Assignment]:
    """Return the new target of each member.

    Args:
        members: By member id; their topics are keys of `assignable`.
        assignable: The initialized partitions of all subscribed topics.
        homogeneous: Whether all members subscribe to the same topics.
    """
    target: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in members}
    for topics in [list(assignable)] if homogeneous else [[topic_id] for topic_id in assignable]:
        subscribers = [member_id for member_id, member in members.items() if not member.subscribed.isdisjoint(topics)]
        if not subscribers:
            continue
        partitions = [(topic_id, index) for topic_id in topics for index in assignable[topic_id]]
        previous = {
            member_id: [(topic_id, index) for topic_id in topics for index in sorted(member.assigned.get(topic_id, ()))]
            for member_id, member in members.items()
        }
        for member_id, shared in _Sharing(partitions, subscribers, previous).build():
            for topic_id, index in shared:
                target[member_id].setdefault(topic_id, set()).add(index)
    return dict(target)


class _Sharing:
    def __init__(
        self,
        partitions: Sequence[_TopicPartition],
        subscribers: Sequence[str],
        previous: Mapping[str, Sequence[_TopicPartition]],
    ) -> None:
        count = len(subscribers)
        self._sharing = -(-count // len(partitions)) if partitions else 0
        share = self._sharing * len(partitions) / count
        self._wanted = {
            member_id: ceil(share * (number + 1)) - ceil(share * number) for number, member_id in enumerate(subscribers)
        }
        self._by_member = {member_id: dict.fromkeys(owned) for member_id, owned in previous.items()}
        self._by_partition: dict[_TopicPartition, dict[str, None]] = {}
        for member_id, owned in previous.items():
            for partition in owned:
                self._by_partition.setdefault(partition, {})[member_id] = None
        self._partitions = partitions

    def build(self) -> Iterable[tuple[str, Iterable[_TopicPartition]]]:
        self._revoke()
        for partition in self._partitions:
            self._by_partition.setdefault(partition, {})
        self._assign_remaining()
        return self._by_member.items()

    def _revoke(self) -> None:
        """Take partitions from members that have too many, and members from partitions that have too many."""
        for member_id, owned in self._by_member.items():
            for partition in list(owned)[: max(len(owned) - self._wanted.get(member_id, 0), 0)]:
                self._unassign(member_id, partition)
        for partition, sharing in self._by_partition.items():
            for member_id in list(sharing)[: max(len(sharing) - self._sharing, 0)]:
                self._unassign(member_id, partition)

    def _unassign(self, member_id: str, partition: _TopicPartition) -> None:
        del self._by_member[member_id][partition]
        del self._by_partition[partition][member_id]

    def _assign_remaining(self) -> None:
        """Assign each partition in turn to members that have too few, until none can get it."""
        unfilled = [one for one, wanted in self._wanted.items() if len(self._by_member[one]) < wanted]
        turn, assigned_in_turn = 0, False
        for partition, sharing in self._by_partition.items():
            while unfilled and len(sharing) < self._sharing:
                if turn == len(unfilled):
                    if not assigned_in_turn:
                        break
                    turn, assigned_in_turn = 0, False
                member_id = unfilled[turn]
                if member_id in sharing:
                    turn += 1
                    continue
                sharing[member_id] = self._by_member[member_id][partition] = None
                assigned_in_turn = True
                if len(self._by_member[member_id]) < self._wanted[member_id]:
                    turn += 1
                else:
                    del unfilled[turn]
