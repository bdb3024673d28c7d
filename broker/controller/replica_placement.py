"""Replica placement: Kafka's StripedReplicaPlacer without racks, and the validation of manual assignments.

The brokers are shuffled. For each partition, the next one is the preferred leader and those after it are followers;
after a full round, they are shuffled again. A fenced broker gets replicas only if the live ones do not suffice, and is
never the preferred leader. A cluster of one draws no random numbers.
"""

from collections.abc import Collection, Sequence
from random import Random  # noqa: TID251  (type only)


def place(
    random: Random, up: Sequence[int], down: Sequence[int], partitions: int, replication_factor: int
) -> list[tuple[int, ...]]:
    """Return the replicas of each partition, preferred leader first; `placement_problem` must be None."""
    placed = []
    order, spare = list(up), list(down)
    for index in range(partitions):
        first_leader = index % len(up)
        if first_leader == 0 and len(up) + len(down) > 1:
            random.shuffle(order)
            random.shuffle(spare)
        brokers = order[first_leader:] + order[:first_leader] + spare
        placed.append(tuple(brokers[:replication_factor]))
    return placed


def placement_problem(up: int, registered: int, replication_factor: int) -> str | None:
    if up == 0:
        reason = "All brokers are currently fenced, or have all their log directories cordoned."
    elif replication_factor > registered:
        reason = (
            f"The target replication factor of {replication_factor} cannot be reached because only {registered} "
            "broker(s) are registered or some brokers have all their log directories cordoned."
        )
    else:
        return None
    return f"Unable to replicate the partition {replication_factor} time(s): {reason}"


def assignment_problem(
    broker_ids: Collection[int], registered: Collection[int], replication_factor: int | None = None
) -> str | None:
    """Return the problem with a manual assignment, or None (validateManualPartitionAssignment).

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
