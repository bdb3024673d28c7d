"""Moving partitions to other brokers (KIP-455): Kafka's PartitionReassignmentReplicas and PartitionReassignmentRevert.

While a reassignment is in progress, a partition has the replicas that it is to have and, behind them, those that it is
to lose. Once all that are added are in sync, the others go; nothing is in progress where none is added.
"""

from typing import NamedTuple

from sluice.broker.metadata.topic import Partition


class Replicas(NamedTuple):
    """Those of a partition, and those of them that are in sync."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Plan(NamedTuple):
    """A reassignment as it begins."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def is_reassigned(partition: Partition) -> bool:
    """Whether a reassignment is in progress."""
    return bool(partition.adding or partition.removing)


def plan(partition: Partition, target: tuple[int, ...]) -> Plan:
    """How a partition gets to `target`, from wherever it is on its way to."""
    now = partition.replicas
    adding = tuple(sorted(set(target) - set(now) | set(partition.adding) & set(target)))
    removing = tuple(sorted(set(now) - set(target)))
    return Plan((*target, *removing), adding, removing)


def completed(partition: Partition) -> Replicas | None:
    """The replicas that stay, if all that were to join have done so; None: it goes on."""
    adding, removing = partition.adding, partition.removing
    if not is_reassigned(partition):
        return None
    replicas = tuple(node_id for node_id in partition.replicas if node_id not in removing)
    isr = tuple(node_id for node_id in partition.isr if node_id not in removing)
    if not isr or not replicas or not set(isr).issuperset(adding):
        return None
    if len(adding) < len(removing) and not set(isr).issuperset(replicas):
        return None  # fewer replicas than before: none of them should be out of sync
    return Replicas(replicas, isr)


def reverted(partition: Partition) -> Replicas:
    """The replicas as they were; without any in sync that stays, the first one counts as such: that is unclean."""
    replicas = tuple(node_id for node_id in partition.replicas if node_id not in partition.adding)
    isr = tuple(node_id for node_id in partition.isr if node_id not in partition.adding)
    return Replicas(replicas, isr or replicas[:1])


def changes_factor(partition: Partition, target: tuple[int, ...]) -> tuple[int, int] | None:
    """How many replicas a partition is to have, now and then, where these are not as many (KIP-860)."""
    now = set(partition.replicas)
    if is_reassigned(partition):
        now = (now | set(partition.adding)) - set(partition.removing)
    return None if len(now) == len(target) else (len(now), len(target))
