"""The subscription, assignment and positions of a consumer (Kafka's SubscriptionState). Sans-I/O.

A newly assigned partition gets a position from the group's committed offset, from `seek`, or from the reset policy:

    state            position   waits for                                         fetched
    INITIALIZING     no         the committed offset, or a reset                  no
    AWAIT_RESET      no         an offset from the leader (ListOffsets)           no
    AWAIT_VALIDATION yes        validation by the leader (OffsetForLeaderEpoch)   no
    FETCHING         yes        nothing                                           yes, unless paused

A position includes the epoch of the record before it, if known, and the leader and leader epoch that it is valid for.
After a leader change (KIP-320), the new leader returns the end offset of the record's epoch. If that is below the
position, the log was truncated: the position moves back to it or, with the policy `none`, the consumer raises
LogTruncationError.
"""

from collections.abc import Callable, Collection, Iterable
from enum import Enum
from math import inf
from re import Pattern
from typing import NamedTuple

from sluice.client.backoff import Backoff
from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import NO_EPOCH, LeaderAndEpoch, TopicPartition

from .offset_reset import NONE, OffsetReset

NO_OFFSET = -1


class NoSubscriptionError(KafkaException):
    """A missing or conflicting subscription, or a partition that is not assigned."""


class FetchPosition(NamedTuple):
    """A fetch position. `offset_epoch`: epoch of the record before it; `leader`: the leader that it is valid for."""

    offset: int
    offset_epoch: int
    leader: LeaderAndEpoch


class FetchState(Enum):
    INITIALIZING = "initializing"
    FETCHING = "fetching"
    AWAIT_RESET = "await reset"
    AWAIT_VALIDATION = "await validation"


class Truncation(NamedTuple):
    """A position beyond a truncation; `divergent`: where the log diverged from it, if known."""

    partition: TopicPartition
    position: FetchPosition
    divergent: OffsetAndMetadata | None


class PartitionState:
    def __init__(self) -> None:
        self.state = FetchState.INITIALIZING
        self.position: FetchPosition | None = None
        self.reset: OffsetReset | None = None  # in AWAIT_RESET only
        self.next_retry_ms = -inf
        self.failures = 0
        self.is_paused = False
        self.is_pending_revocation = False  # true: `poll` returns no more of its records
        self.high_watermark = self.last_stable_offset = self.log_start_offset = NO_OFFSET
        self._preferred_replica: int | None = None
        self._preferred_until_ms = -inf

    @property
    def is_fetchable(self) -> bool:
        return self.state is FetchState.FETCHING and not self.is_paused and not self.is_pending_revocation

    def seek(self, position: FetchPosition) -> None:
        self.state = FetchState.FETCHING
        self.position = position
        self.reset = None
        self._begin()

    def seek_unvalidated(self, position: FetchPosition) -> None:
        """Fetch from a position after its validation; immediately if an epoch is unknown."""
        self.seek(position)
        if position.offset_epoch != NO_EPOCH and position.leader.epoch != NO_EPOCH:
            self.state = FetchState.AWAIT_VALIDATION

    def reset_by(self, reset: OffsetReset) -> None:
        self.state = FetchState.AWAIT_RESET
        self.position = None
        self.reset = reset
        self._begin()

    def _begin(self) -> None:
        self.next_retry_ms = -inf
        self.failures = 0

    # -- read replica (KIP-392) ----------------------------------------------------------------------------------------

    def preferred_replica(self, now_ms: float) -> int | None:
        if self._preferred_replica is not None and now_ms > self._preferred_until_ms:
            self._preferred_replica = None
        return self._preferred_replica

    def prefers(self, node_id: int) -> bool:
        return self._preferred_replica == node_id

    def prefer_replica(self, node_id: int, until_ms: float) -> None:
        """Prefer a replica until a time, which a repeated call does not extend."""
        if self._preferred_replica != node_id:
            self._preferred_replica, self._preferred_until_ms = node_id, until_ms

    def clear_preferred_replica(self) -> bool:
        """Return to the leader; return whether a replica was preferred."""
        was_preferred = self._preferred_replica is not None
        self._preferred_replica = None
        return was_preferred

    def end_offset(self, *, read_committed: bool) -> int:
        return self.last_stable_offset if read_committed else self.high_watermark


class SubscriptionState:
    def __init__(self, reset: OffsetReset) -> None:
        self.default_reset = reset
        self.topics: frozenset[str] = frozenset()
        self.group_topics: frozenset[str] = frozenset()  # of all members, on the group leader
        self.pattern: Pattern[str] | None = None
        self.is_manual = False
        self.on_change: Callable[[], None] = lambda: None  # called when metadata of other topics is needed
        self._partitions: dict[TopicPartition, PartitionState] = {}

    # -- subscription and assignment -----------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> None:
        self._ensure_free("subscribe to topics", other=self.is_manual or self.pattern is not None)
        self.topics = frozenset(topics)
        self.on_change()

    def subscribe_pattern(self, pattern: Pattern[str]) -> None:
        self._ensure_free(
            "subscribe to a pattern", other=self.is_manual or (self.pattern is None and bool(self.topics))
        )
        self.pattern = pattern
        self.on_change()

    def matched(self, topics: Iterable[str]) -> None:
        """Apply the pattern to existing topics."""
        assert self.pattern is not None
        self.topics = frozenset(filter(self.pattern.fullmatch, topics))
        self.group_topics &= self.topics

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self._ensure_free("assign partitions", other=not self.is_manual and self.is_subscribed)
        self.is_manual = True
        self._replace(partitions)
        self.on_change()

    def assign_from_subscribed(self, partitions: Iterable[TopicPartition]) -> None:
        """Apply the group's assignment; partitions that stay assigned keep their positions."""
        assert not self.is_manual, "partitions are assigned manually"
        self._replace(partitions)

    def unsubscribe(self) -> None:
        self._partitions = {}
        self.topics = self.group_topics = frozenset()
        self.pattern = None
        self.is_manual = False

    def group_subscribes(self, topics: Iterable[str]) -> bool:
        """Set the topics of all members, on the leader; return whether any is new."""
        before = self.metadata_topics
        self.group_topics = frozenset(topics)
        return not self.metadata_topics <= before

    @property
    def is_subscribed(self) -> bool:
        return bool(self.topics) or self.pattern is not None

    @property
    def metadata_topics(self) -> frozenset[str]:
        if self.is_manual:
            return frozenset(partition.topic for partition in self._partitions)
        return self.topics | self.group_topics

    @property
    def assigned(self) -> Collection[TopicPartition]:
        return self._partitions.keys()

    def _replace(self, partitions: Iterable[TopicPartition]) -> None:
        before = self._partitions
        self._partitions = {partition: before.get(partition) or PartitionState() for partition in partitions}

    def _ensure_free(self, action: str, *, other: bool) -> None:
        if other:
            raise NoSubscriptionError(
                f"cannot {action}: topics, a pattern and partitions exclude each other; unsubscribe first"
            )

    # -- partitions ----------------------------------------------------------------------------------------------------

    def get(self, partition: TopicPartition) -> PartitionState | None:
        return self._partitions.get(partition)

    def state_of(self, partition: TopicPartition) -> PartitionState:
        state = self._partitions.get(partition)
        if state is None:
            raise NoSubscriptionError(f"partition {partition} is not assigned to this consumer")
        return state

    def items(self) -> Iterable[tuple[TopicPartition, PartitionState]]:
        return self._partitions.items()

    def in_state(self, state: FetchState, now_ms: float = inf) -> list[TopicPartition]:
        """Return the partitions in a state whose retry time has come."""
        return [
            partition
            for partition, one in self._partitions.items()
            if one.state is state and one.next_retry_ms <= now_ms
        ]

    def next_retry_ms(self, state: FetchState, now_ms: float) -> float:
        return min(
            (
                one.next_retry_ms
                for one in self._partitions.values()
                if one.state is state and one.next_retry_ms > now_ms
            ),
            default=inf,
        )

    def retry_at(self, partitions: Iterable[TopicPartition], at_ms: float) -> None:
        for partition in partitions:
            state = self._partitions.get(partition)
            if state is not None:
                state.next_retry_ms = at_ms

    def failed(self, partitions: Iterable[TopicPartition], now_ms: float, backoff: Backoff) -> None:
        states = [state for partition in partitions if (state := self._partitions.get(partition)) is not None]
        wait_ms = backoff.backoff(max((state.failures for state in states), default=0))
        for state in states:
            state.failures += 1
            state.next_retry_ms = now_ms + wait_ms

    def moved_to_end(self, partition: TopicPartition) -> None:
        """Move a partition to the end, so that the others are fetched first."""
        state = self._partitions.pop(partition, None)
        if state is not None:
            self._partitions[partition] = state

    @property
    def has_all_positions(self) -> bool:
        return all(one.state is FetchState.FETCHING for one in self._partitions.values())

    def reset_initializing(self) -> list[TopicPartition]:
        """Reset partitions without a committed offset; return them if the policy is `none`."""
        lost = self.in_state(FetchState.INITIALIZING)
        if self.default_reset is NONE:
            return lost
        for partition in lost:
            self._partitions[partition].reset_by(self.default_reset)
        return []

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the validated positions, which `commit` commits by default."""
        return {
            partition: OffsetAndMetadata(one.position.offset, "", one.position.offset_epoch)
            for partition, one in self._partitions.items()
            if one.position is not None and one.state is FetchState.FETCHING
        }

    # -- validation (KIP-320) ------------------------------------------------------------------------------------------

    def leader_changed(self, partition: TopicPartition, leader: LeaderAndEpoch, *, can_validate: bool) -> None:
        state = self._partitions.get(partition)
        if state is None or state.state is FetchState.AWAIT_RESET or leader.leader is None:
            return
        position = state.position
        if position is not None and position.leader != leader:
            moved = position._replace(leader=leader)
            state.clear_preferred_replica()
            if can_validate:
                state.seek_unvalidated(moved)
            else:
                state.seek(moved)

    def validated(
        self, partition: TopicPartition, requested: FetchPosition, end_offset: int, end_epoch: int
    ) -> Truncation | None:
        """Apply a validation response; return a truncation that the application must handle."""
        state = self._partitions.get(partition)
        if state is None or state.state is not FetchState.AWAIT_VALIDATION or state.position != requested:
            return None
        is_known = end_offset != NO_OFFSET and end_epoch != NO_EPOCH
        if is_known and end_offset >= requested.offset:
            state.seek(requested)
        elif self.default_reset is NONE:
            return Truncation(partition, requested, OffsetAndMetadata(end_offset, "", end_epoch) if is_known else None)
        elif is_known:
            state.seek(FetchPosition(end_offset, end_epoch, requested.leader))
        else:
            state.reset_by(self.default_reset)
        return None

    def reset_to(self, partition: TopicPartition, reset: OffsetReset, position: FetchPosition) -> bool:
        """Apply an offset for a reset; return False if the reset is outdated."""
        state = self._partitions.get(partition)
        if state is None or state.state is not FetchState.AWAIT_RESET or state.reset != reset:
            return False
        state.seek_unvalidated(position)
        return True
