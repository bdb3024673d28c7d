"""Which topics and partitions a consumer has, and where it is in each: Kafka's SubscriptionState. No socket, no clock.

Theory of operation. A partition that is assigned has no position at first; it gets one by what the group committed, by
`seek`, or by the reset policy. It is in one of four states:

    state            position   what it waits for                                   fetched
    INITIALIZING     no         the group's committed offset, or to be reset        no
    AWAIT_RESET      no         the leader to tell an offset (ListOffsets)          no
    AWAIT_VALIDATION yes        the leader to tell that the log was not truncated   no
    FETCHING         yes        nothing                                             yes, unless paused

A position carries the epoch of the record before it, where that is known, and the leader and epoch it was believed
under. When metadata has a newer one (KIP-320), the position is validated: the new leader tells where the epoch of the
record before it ended (OffsetForLeaderEpoch). An end below the position is a truncation: the position goes back to
there, or, where the policy is `none`, the application is told (LogTruncationException).

What failed is not tried before `next_retry_ms`, by partition.
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
    """Subscribing to topics, to a pattern and assigning partitions exclude each other, and something needs one."""


class FetchPosition(NamedTuple):
    """Where to read next. `offset_epoch`: of the record before; `leader`: under which that was believed."""

    offset: int
    offset_epoch: int
    leader: LeaderAndEpoch


class FetchState(Enum):
    """What a partition waits for."""

    INITIALIZING = "initializing"
    FETCHING = "fetching"
    AWAIT_RESET = "await reset"
    AWAIT_VALIDATION = "await validation"


class Truncation(NamedTuple):
    """A position that the log does not hold any more; `divergent`: where it parted from ours, if that is known."""

    partition: TopicPartition
    position: FetchPosition
    divergent: OffsetAndMetadata | None


class PartitionState:
    """One assigned partition."""

    __slots__ = (
        "failures",
        "high_watermark",
        "is_paused",
        "is_pending_revocation",
        "last_stable_offset",
        "log_start_offset",
        "next_retry_ms",
        "position",
        "reset",
        "state",
    )

    def __init__(self) -> None:
        self.state = FetchState.INITIALIZING
        self.position: FetchPosition | None = None
        self.reset: OffsetReset | None = None  # how, while it is awaited
        self.next_retry_ms = -inf
        self.failures = 0  # in a row
        self.is_paused = False
        self.is_pending_revocation = False  # nothing more of it is handed out
        self.high_watermark = self.last_stable_offset = self.log_start_offset = NO_OFFSET

    @property
    def is_fetchable(self) -> bool:
        return self.state is FetchState.FETCHING and not self.is_paused and not self.is_pending_revocation

    def seek(self, position: FetchPosition) -> None:
        """Reads from there, and asks nobody."""
        self.state = FetchState.FETCHING
        self.position = position
        self.reset = None
        self._begin()

    def seek_unvalidated(self, position: FetchPosition) -> None:
        """Reads from there, if the leader says that the log still holds it; where nothing can be told, at once."""
        self.seek(position)
        if position.offset_epoch != NO_EPOCH and position.leader.epoch != NO_EPOCH:
            self.state = FetchState.AWAIT_VALIDATION

    def reset_by(self, reset: OffsetReset) -> None:
        """Forgets the position: the leader is to be asked for one."""
        self.state = FetchState.AWAIT_RESET
        self.position = None
        self.reset = reset
        self._begin()

    def _begin(self) -> None:
        self.next_retry_ms = -inf
        self.failures = 0

    def end_offset(self, *, read_committed: bool) -> int:
        """Up to where it can be read, as the last answer told; -1: none did."""
        return self.last_stable_offset if read_committed else self.high_watermark


class SubscriptionState:
    """All that one consumer reads."""

    def __init__(self, reset: OffsetReset) -> None:
        self.default_reset = reset
        self.topics: frozenset[str] = frozenset()  # that are subscribed to, by name or by the pattern
        self.group_topics: frozenset[str] = frozenset()  # of all members, at their leader
        self.pattern: Pattern[str] | None = None
        self.is_manual = False
        self.assignment_version = 0  # counts assignments
        self.on_change: Callable[[], None] = lambda: None  # other topics are wanted
        self._partitions: dict[TopicPartition, PartitionState] = {}

    # -- what is read ------------------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> None:
        """Wants topics: the group says which partitions."""
        self._ensure_free("subscribe to topics", other=self.is_manual or self.pattern is not None)
        self._want(topics)

    def subscribe_pattern(self, pattern: Pattern[str]) -> None:
        """Wants all topics whose names match as a whole."""
        self._ensure_free(
            "subscribe to a pattern", other=self.is_manual or (self.pattern is None and bool(self.topics))
        )
        self.pattern = pattern
        self.on_change()

    def matched(self, topics: Iterable[str]) -> bool:
        """Takes the topics that there are; whether what matches is different from before."""
        assert self.pattern is not None
        found = frozenset(filter(self.pattern.fullmatch, topics))
        is_other = found != self.topics
        self.topics = found
        self.group_topics &= found
        return is_other

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads these partitions; no group says which."""
        self._ensure_free("assign partitions", other=not self.is_manual and self.is_subscribed)
        self.is_manual = True
        self._replace(partitions)
        self.on_change()

    def assign_from_subscribed(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads what the group says; positions of what stays are kept."""
        assert not self.is_manual, "assigned by hand"
        self._replace(partitions)

    def unsubscribe(self) -> None:
        """Reads nothing."""
        self._partitions = {}
        self.topics = self.group_topics = frozenset()
        self.pattern = None
        self.is_manual = False
        self.assignment_version += 1

    def group_subscribes(self, topics: Iterable[str]) -> bool:
        """As the group's leader: metadata of all members' topics is needed; whether that is more than before."""
        before = self.metadata_topics
        self.group_topics = frozenset(topics)
        return not self.metadata_topics <= before

    @property
    def is_subscribed(self) -> bool:
        """Whether a group says which partitions."""
        return bool(self.topics) or self.pattern is not None

    @property
    def metadata_topics(self) -> frozenset[str]:
        """The topics that metadata has to tell of."""
        if self.is_manual:
            return frozenset(partition.topic for partition in self._partitions)
        return self.topics | self.group_topics

    @property
    def assigned(self) -> Collection[TopicPartition]:
        return self._partitions.keys()

    def _want(self, topics: Iterable[str]) -> None:
        self.topics = frozenset(topics)
        self.on_change()

    def _replace(self, partitions: Iterable[TopicPartition]) -> None:
        before = self._partitions
        self._partitions = {partition: before.get(partition) or PartitionState() for partition in partitions}
        self.assignment_version += 1

    def _ensure_free(self, what: str, *, other: bool) -> None:
        if other:
            raise NoSubscriptionError(
                f"cannot {what}: topics, a pattern and partitions exclude each other; unsubscribe first"
            )

    # -- partitions --------------------------------------------------------------------------------------------------

    def get(self, partition: TopicPartition) -> PartitionState | None:
        return self._partitions.get(partition)

    def state_of(self, partition: TopicPartition) -> PartitionState:
        """Of a partition that is assigned; raises NoSubscriptionError for another."""
        state = self._partitions.get(partition)
        if state is None:
            raise NoSubscriptionError(f"partition {partition} is not assigned to this consumer")
        return state

    def items(self) -> Iterable[tuple[TopicPartition, PartitionState]]:
        return self._partitions.items()

    def in_state(self, state: FetchState, now_ms: float = inf) -> list[TopicPartition]:
        """Those that wait for something, and may be tried now."""
        return [
            partition
            for partition, one in self._partitions.items()
            if one.state is state and one.next_retry_ms <= now_ms
        ]

    def next_retry_ms(self, state: FetchState, now_ms: float) -> float:
        """When the next of those that wait for something may be tried."""
        return min(
            (
                one.next_retry_ms
                for one in self._partitions.values()
                if one.state is state and one.next_retry_ms > now_ms
            ),
            default=inf,
        )

    def retry_at(self, partitions: Iterable[TopicPartition], at_ms: float) -> None:
        """These are not to be tried before."""
        for partition in partitions:
            state = self._partitions.get(partition)
            if state is not None:
                state.next_retry_ms = at_ms

    def failed(self, partitions: Iterable[TopicPartition], now_ms: float, backoff: Backoff) -> None:
        """What was asked about these failed: they wait, together."""
        states = [state for partition in partitions if (state := self._partitions.get(partition)) is not None]
        wait_ms = backoff.backoff(max((state.failures for state in states), default=0))
        for state in states:
            state.failures += 1
            state.next_retry_ms = now_ms + wait_ms

    def moved_to_end(self, partition: TopicPartition) -> None:
        """It was its turn: others are asked for first."""
        state = self._partitions.pop(partition, None)
        if state is not None:
            self._partitions[partition] = state

    @property
    def has_all_positions(self) -> bool:
        return all(one.state is FetchState.FETCHING for one in self._partitions.values())

    def reset_initializing(self) -> list[TopicPartition]:
        """Resets what no committed offset gave a position; returns those for which there is no policy."""
        lost = self.in_state(FetchState.INITIALIZING)
        if self.default_reset is NONE:
            return lost
        for partition in lost:
            self._partitions[partition].reset_by(self.default_reset)
        return []

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a commit without offsets commits: the positions that are valid."""
        return {
            partition: OffsetAndMetadata(one.position.offset, "", one.position.offset_epoch)
            for partition, one in self._partitions.items()
            if one.position is not None and one.state is FetchState.FETCHING
        }

    # -- validation (KIP-320) ----------------------------------------------------------------------------------------

    def leader_changed(self, partition: TopicPartition, leader: LeaderAndEpoch, *, can_validate: bool) -> bool:
        """Metadata says who leads now; whether the position has to be validated. `can_validate`: the leader can."""
        state = self._partitions.get(partition)
        if state is None or state.state is FetchState.AWAIT_RESET or leader.leader is None:
            return False
        position = state.position
        if position is not None and position.leader != leader:
            moved = position._replace(leader=leader)
            if can_validate:
                state.seek_unvalidated(moved)
            else:
                state.seek(moved)
        return state.state is FetchState.AWAIT_VALIDATION

    def validated(
        self, partition: TopicPartition, asked: FetchPosition, end_offset: int, end_epoch: int
    ) -> Truncation | None:
        """Takes what the leader told of the epoch of a position; returns what the application has to decide."""
        state = self._partitions.get(partition)
        if state is None or state.state is not FetchState.AWAIT_VALIDATION or state.position != asked:
            return None  # something else was decided meanwhile
        is_known = end_offset != NO_OFFSET and end_epoch != NO_EPOCH
        if is_known and end_offset >= asked.offset:
            state.seek(asked)
        elif self.default_reset is NONE:
            return Truncation(partition, asked, OffsetAndMetadata(end_offset, "", end_epoch) if is_known else None)
        elif is_known:
            state.seek(FetchPosition(end_offset, end_epoch, asked.leader))
        else:
            state.reset_by(self.default_reset)
        return None

    def reset_to(self, partition: TopicPartition, reset: OffsetReset, position: FetchPosition) -> bool:
        """Takes an offset that was asked for to reset; whether it is still wanted."""
        state = self._partitions.get(partition)
        if state is None or state.state is not FetchState.AWAIT_RESET or state.reset != reset:
            return False
        state.seek_unvalidated(position)
        return True
