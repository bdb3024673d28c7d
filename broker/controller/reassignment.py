"""Partition reassignments (KIP-455): Kafka's PartitionReassignmentReplicas and PartitionReassignmentRevert.

During a reassignment, a partition's replicas are the target ones, followed by those to remove. Once all added replicas
are in sync, the others are removed.
"""

from typing import NamedTuple

from sluice.broker.metadata.topic import Partition


class Replicas(NamedTuple):
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Plan(NamedTuple):
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def is_reassigned(partition: Partition) -> bool:
    return bool(partition.adding or partition.removing)


def plan(partition: Partition, target: tuple[int, ...]) -> Plan:
    now = partition.replicas
    adding = tuple(sorted(set(target) - set(now) | set(partition.adding) & set(target)))
    removing = tuple(sorted(set(now) - set(target)))
    return Plan((*target, *removing), adding, removing)


def completed(partition: Partition) -> Replicas | None:
    adding, removing = partition.adding, partition.removing
    if not is_reassigned(partition):
        return None
    replicas = tuple(node_id for node_id in partition.replicas if node_id not in removing)
    isr = tuple(node_id for node_id in partition.isr if node_id not in removing)
    if not isr or not replicas or not set(isr).issuperset(adding):
        return None
    if len(adding) < len(removing) and not set(isr).issuperset(replicas):
        return None  # with fewer replicas than before, all of them must be in sync
    return Replicas(replicas, isr)


def reverted(partition: Partition) -> Replicas:
    """Return the original replicas; if none is in sync, the ISR is the first one (unclean)."""
    replicas = tuple(node_id for node_id in partition.replicas if node_id not in partition.adding)
    isr = tuple(node_id for node_id in partition.isr if node_id not in partition.adding)
    return Replicas(replicas, isr or replicas[:1])


def changes_factor(partition: Partition, target: tuple[int, ...]) -> tuple[int, int] | None:
    """Return the old and the new replication factor, if a reassignment changes it (KIP-860)."""
    now = set(partition.replicas)
    if is_reassigned(partition):
        now = (now | set(partition.adding)) - set(partition.removing)
    return None if len(now) == len(target) else (len(now), len(target))
