"""The interface of a group, of either rebalance protocol (Kafka's interface Group)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.metadata.topic import Topic
from sluice.protocol.errors import ErrorCode

from .offsets import CommittedOffset

CONSUMER, SHARE, STREAMS = "consumer", "share", "streams"
UNKNOWN_MEMBER_ID = ""  # of a member without an id


class HeartbeatError(NamedTuple):
    error: ErrorCode
    message: str | None


class NewOffset(NamedTuple):
    topic: Topic
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int = -1


class Commit(NamedTuple):
    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int  # or the member epoch; negative: none
    version: int
    offsets: Sequence[NewOffset]
    transactional: bool = False


class Group(Protocol):
    """A group. Errors are returned as values."""

    group_id: str
    type: str  # in ListGroups: "classic", "consumer", "share", "streams"

    @property
    def state_name(self) -> str: ...

    @property
    def members(self) -> Mapping[str, object]: ...

    @property
    def generation(self) -> int:
        """Return the generation id, or the epoch of a group with member epochs."""

    @property
    def listed_protocol_type(self) -> str: ...

    @property
    def is_empty(self) -> bool:
        """Return true without members; the group may then be deleted or change its type."""

    def commit_error(self, commit: Commit) -> ErrorCode: ...

    def offset_fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return the error for fetching offsets as this member; anonymously: None and -1."""

    def offset_delete_error(self) -> ErrorCode: ...

    def delete_error(self) -> ErrorCode: ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether members may consume this topic; if so, its offsets do not expire."""

    def retention_start_ms(self, committed: CommittedOffset) -> int | None: ...

    def tombstones(self) -> list[KeyValue]: ...

    def cancel_timers(self) -> None: ...
