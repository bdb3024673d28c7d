"""A member of a consumer group (KIP-848). Follows Kafka's ConsumerGroupMember and MemberState. It never changes: what
happens to a member makes another one, and whether something happened is told by comparing the two.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

# Topic id -> partition -> the member's epoch when it was given that partition. Without topics that have no partitions.
PartitionEpochs = Mapping[bytes, Mapping[int, int]]
_NOTHING: PartitionEpochs = {}

JOIN_EPOCH = 0  # of a heartbeat: the member joins, or begins anew
LEAVE_EPOCH = -1  # it leaves
STATIC_LEAVE_EPOCH = -2  # it leaves and will be back: a static member's place is kept


class MemberState(IntEnum):
    """How far a member is on its way to the target. The numbers are those of the records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it was told to give partitions up, and has not said that it did
    UNRELEASED_PARTITIONS = 2  # others have not given up all that it is to get


class ClassicMetadata(NamedTuple):
    """What a member that speaks the classic protocol said when it joined."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]  # names and metadata, what it likes best first


class ConsumerMember(NamedTuple):
    """One member."""

    member_id: str
    member_epoch: int = 0  # that of the target assignment it has, or is on the way to
    previous_member_epoch: int = -1  # it may not have got the answer that told the current one
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None  # of a static member
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
        """Whether it has all that the target of this epoch says, and nothing else."""
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch

    def at_epoch(self, member_epoch: int) -> "ConsumerMember":
        """The same member in this epoch, which may be the one it is in."""
        return self._replace(member_epoch=member_epoch, previous_member_epoch=self.member_epoch)

    def epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """In which epoch it was given a partition; None if it does not have it."""
        for held in (self.assigned, self.pending_revocation):
            epoch = held.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None
