"""What the coordinator asks of a group, of whichever protocol its members speak (Kafka's interface Group)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.metadata.topic import Topic
from sluice.protocol.errors import ErrorCode

from .offsets import CommittedOffset

CONSUMER = "consumer"  # the type of groups of the new protocol (KIP-848)
UNKNOWN_MEMBER_ID = ""  # a member that has no id yet


class NewOffset(NamedTuple):
    """An offset that a client wants to commit, for a partition that is there."""

    topic: Topic
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int = -1  # OffsetCommit v1 may say; -1: now


class Commit(NamedTuple):
    """A client's wish to commit offsets: who asks, with which API version, and what."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int  # or the member's epoch; negative: of no generation
    version: int
    offsets: Sequence[NewOffset]
    transactional: bool = False


class Group(Protocol):
    """A group of one kind. Errors are values: NONE where nothing is wrong."""

    group_id: str
    type: str  # as ListGroups shows it: "classic", "consumer"

    @property
    def state_name(self) -> str:
        """As ListGroups shows it: "Stable"."""

    @property
    def members(self) -> Mapping[str, object]:
        """By member id."""

    @property
    def generation(self) -> int:
        """Of a classic group; the epoch of a consumer group."""

    @property
    def listed_protocol_type(self) -> str:
        """As ListGroups shows it: "consumer", or empty where none is known."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, so that it may be deleted or replaced by one of another kind."""

    def commit_error(self, commit: Commit) -> ErrorCode:
        """Whether this may be committed now."""

    def offset_fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Whether this member, or for None and -1 anyone, may see the group's offsets."""

    def offset_delete_error(self) -> ErrorCode:
        """Whether offsets may be deleted, of topics without subscribers."""

    def delete_error(self) -> ErrorCode:
        """Whether the group may be deleted."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members consume this topic, or may, so that its offsets stay."""

    def retention_start_ms(self, committed: CommittedOffset) -> int | None:
        """Since when (wall ms) an offset is kept for retention's sake only; None: it is in use."""

    def tombstones(self) -> list[KeyValue]:
        """The records that say it is no more, those about its offsets not included."""

    def cancel_timers(self) -> None:
        """It is no more: nothing of it happens later."""
