"""Which brokers have which partition: Kafka's StripedReplicaPlacer for brokers without racks, and what it asks of an
assignment that a client makes.

The brokers are put in a random order. Partition after partition, each next one leads, and those after it follow; once
all have led, the order is drawn anew. A broker that is down gets replicas only where those that are up do not suffice,
and leads none. A cluster of one draws nothing.
"""

from collections.abc import Collection, Sequence
from random import Random  # noqa: TID251  (the type of what is injected; nothing is drawn from the module itself)


def place(
    random: Random, up: Sequence[int], down: Sequence[int], partitions: int, replication_factor: int
) -> list[tuple[int, ...]]:
    """The brokers of each partition, its preferred leader first; `placement_problem` has found nothing wrong."""
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
    """Why so many replicas cannot be had, in Kafka's words; None if they can."""
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
    """What is wrong with the brokers that a partition is to have (validateManualPartitionAssignment), else None.

    `replication_factor` is how many they have to be, where that is known.
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
