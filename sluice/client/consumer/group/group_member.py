"""The input and the result of assignors."""

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from sluice.client.metadata.cluster import TopicPartition


class GroupMember(NamedTuple):
    """A member as the leader sees it. `generation_id`: when it got the partitions that it owns."""

    member_id: str
    instance_id: str | None
    topics: frozenset[str]
    owned: frozenset[TopicPartition] = frozenset()
    generation_id: int = -1
    rack: str = ""


Plan = dict[str, list[TopicPartition]]
# The racks of each partition's replicas. Empty if no member has a rack.
Racks = Mapping[TopicPartition, Set[str]]


def needs_racks(of_members: Iterable[str], of_partitions: Racks) -> bool:
    """Return whether racks matter: a member is in a rack with replicas, and a partition has none in some rack."""
    all_racks = frozenset[str]().union(*of_partitions.values())
    return not all_racks.isdisjoint(of_members) and any(racks != all_racks for racks in of_partitions.values())
