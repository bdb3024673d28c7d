"""Replica placement: Kafka's StripedReplicaPlacer, and the validation of manual assignments.

Each partition starts at the next rack, and each of its replicas is in the rack after the previous one's. In every rack,
the brokers take turns. A fenced broker gets replicas only if the live ones of its rack do not suffice, and is never the
preferred leader. After every N partitions, for N live brokers, racks and brokers are shuffled. Different on purpose:
they are also shuffled at the start, where Kafka sorts them and draws the first one. A single broker needs no random
numbers.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import cycle
from random import Random  # noqa: TID251  (type only)


class _Brokers:
    def __init__(self) -> None:
        self._ids: list[int] = []
        self._first = self._used = self._partition = 0

    def add(self, node_id: int) -> None:
        self._ids.append(node_id)

    def shuffle(self, random: Random) -> None:
        random.shuffle(self._ids)

    def next(self, partition: int) -> int | None:
        if partition != self._partition:
            self._partition, self._used, self._first = partition, 0, self._first + 1
        if self._used >= len(self._ids):
            return None
        self._used += 1
        return self._ids[(self._first + self._used - 1) % len(self._ids)]


class _Rack:
    def __init__(self) -> None:
        self.up = _Brokers()
        self.down = _Brokers()

    def next(self, partition: int) -> int | None:
        node_id = self.up.next(partition)
        return self.down.next(partition) if node_id is None else node_id


def place(
    random: Random,
    up: Sequence[int],
    down: Sequence[int],
    partitions: int,
    replication_factor: int,
    racks: Mapping[int, str],
) -> list[tuple[int, ...]]:
    """Return the replicas of each partition, preferred leader first; `placement_problem` must be None."""
    if len(up) == 1 and replication_factor == 1:
        return [tuple(up)] * partitions
    by_name: dict[str | None, _Rack] = {}
    for node_id in up:
        by_name.setdefault(racks.get(node_id), _Rack()).up.add(node_id)
    for node_id in down:
        by_name.setdefault(racks.get(node_id), _Rack()).down.add(node_id)
    in_order = list(by_name.values())
    placed = []
    for index in range(partitions):
        if index % len(up) == 0:
            random.shuffle(in_order)
            for rack in in_order:
                rack.up.shuffle(random)
                rack.down.shuffle(random)
        first = index % len(in_order)
        placed.append(_place_one(in_order[first:] + in_order[:first], index, replication_factor))
    return placed


def _place_one(racks: Sequence[_Rack], partition: int, replication_factor: int) -> tuple[int, ...]:
    skipped: _Rack | None
    skipped, leader = next((rack, node_id) for rack in racks if (node_id := rack.up.next(partition)) is not None)
    replicas = [leader]
    racks_in_turn = cycle(racks)
    while len(replicas) < replication_factor:
        rack = next(racks_in_turn)
        if rack is skipped:
            skipped = None
        elif (node_id := rack.next(partition)) is not None:
            replicas.append(node_id)
    return tuple(replicas)


def placement_problem(up: int, registered: int, replication_factor: int) -> str | None:
    if up == 0:
        return "All brokers are currently fenced, or have all their log directories cordoned."
    if replication_factor > registered:
        return (
            f"The target replication factor of {replication_factor} cannot be reached because only {registered} "
            "broker(s) are registered or some brokers have all their log directories cordoned."
        )
    return None


def assignment_problem(
    broker_ids: Collection[int], registered: Collection[int], replication_factor: int | None = None
) -> str | None:
    """Return the problem with a manual assignment (validateManualPartitionAssignment).

    `replication_factor` is the required number of replicas, if known.
    """
    if not broker_ids:
        return "The manual partition assignment includes an empty replica list."
    before = None
    for broker_id in sorted(broker_ids):
        if broker_id not in registered:
            return f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
        if broker_id == before:
            return f"The manual partition assignment includes the broker {broker_id} more than once."
        before = broker_id
    if replication_factor not in (None, len(broker_ids)):
        return (
            f"The manual partition assignment includes a partition with {len(broker_ids)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )
    return None
