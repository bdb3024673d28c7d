"""An immutable member of a consumer group (KIP-848). Follows Kafka's ConsumerGroupMember and MemberState."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

# Topic id -> partition -> member epoch of the assignment. Without empty topics.
PartitionEpochs = Mapping[bytes, Mapping[int, int]]
_NOTHING: PartitionEpochs = {}


class MemberState(IntEnum):
    """The progress towards the target. The numbers are those in records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # has not confirmed that it gave up partitions
    UNRELEASED_PARTITIONS = 2  # other members have not released partitions of its target


class ResolvedRegex(NamedTuple):
    topics: frozenset[str]
    version: int  # number of topics created until then
    timestamp_ms: int  # wall clock


class ClassicMetadata(NamedTuple):
    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class ConsumerMember(NamedTuple):
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""  # as Java prints an address: "/127.0.0.1"
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    server_assignor: str | None = None
    assigned: PartitionEpochs = _NOTHING
    pending_revocation: PartitionEpochs = _NOTHING
    classic: ClassicMetadata | None = None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch

    def at_epoch(self, member_epoch: int) -> "ConsumerMember":
        return self._replace(member_epoch=member_epoch, previous_member_epoch=self.member_epoch)

    def returning_as(self, member_id: str) -> "ConsumerMember":
        return self._replace(member_id=member_id, member_epoch=0, previous_member_epoch=0)

    def epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        for partitions in (self.assigned, self.pending_revocation):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None
