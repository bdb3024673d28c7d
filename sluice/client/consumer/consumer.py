"""An asyncio consumer with the configuration and the behaviour of Kafka's KafkaConsumer.

    async with Consumer({"bootstrap.servers": "127.0.0.1:9092", "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        for record in await consumer.poll(1000):
            print(record.offset, record.value)

        # or, as a member of a group ("group.id"): consumer.subscribe(["orders"]), and await consumer.commit()

Everything except heartbeats happens in `poll`: joins, listener calls, positions and fetches. Received records are
buffered until the next `poll`.

Keys and values are bytes; the application deserializes. Positions advance when records are returned, so a commit of
positions marks the records of all previous polls as processed.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from random import Random  # noqa: TID251  (the consumer's only source of randomness, unless one is given)
from re import Pattern

from sluice.client.backoff import new_random
from sluice.client.committed_offsets import GroupMetadata, OffsetAndMetadata, with_metadata
from sluice.client.config import ClientConfig, Given, Profile, consumer_config
from sluice.client.consumer.fetch.completed_fetch import FetchSettings
from sluice.client.consumer.fetch.fetcher import Fetcher, FetcherSettings
from sluice.client.consumer.fetch.offset_fetcher import OffsetFetcher
from sluice.client.consumer.group.assignors import Assignor
from sluice.client.consumer.group.consumer_coordinator import ConsumerGroup, RebalanceListener, assignors_of
from sluice.client.errors import KafkaException, TimeoutException
from sluice.client.metadata.cluster import NO_EPOCH, TopicPartition
from sluice.client.network.asyncio_network import AsyncNetwork, yield_to_loop
from sluice.client.retry_sites import RetrySite, backoff_at
from sluice.clock import Clock
from sluice.errors import ArgumentError
from sluice.text.arguments import Duration, checks_arguments

from .metadata import ConsumerMetadata
from .offset_reset import EARLIEST, EARLIEST_TIMESTAMP, LATEST, LATEST_TIMESTAMP, OffsetReset, offset_reset
from .record import ConsumerRecord, OffsetAndTimestamp
from .subscription_state import NO_OFFSET, FetchPosition, NoSubscriptionError, SubscriptionState
from .topic_offsets import TopicOffsets

# As in Kafka's ConsumerNetworkClient: fetches do not wait for other requests to the same broker.
_MAX_IN_FLIGHT = 100


class NoOffsetForPartitionError(KafkaException):
    """Partitions without a committed offset, where no reset policy applies."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.partitions = sorted(partitions)
        super().__init__(
            f"no committed offset, and auto.offset.reset=none: {', '.join(map(str, self.partitions))}; seek first"
        )


@checks_arguments
class Consumer:
    """A consumer, used in `async with`, in one event loop, with one `poll` at a time."""

    def __init__(
        self,
        config: Given,
        *,
        profile: Profile = "kafka",
        assignors: Sequence[Assignor] = (),
        random: Random | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Validate the configuration; `async with` connects.

        Args:
            config: Kafka's consumer properties.
            profile: "kip" follows the KIP texts where Kafka differs.
            assignors: Used instead of `partition.assignment.strategy`.
            random: Source of jitter.
            clock: The event loop's by default.

        Raises:
            ConfigError: For an unknown property or an invalid value.
        """
        self.config = consumer_config(config, profile)
        self.config.ensure_supported()
        self._random = random or new_random()
        self._given_clock = clock
        self._max_poll_records = self.config.integer("max.poll.records")
        self._api_timeout_ms = self.config.integer("default.api.timeout.ms")
        self._subscriptions = SubscriptionState(offset_reset(self.config.text("auto.offset.reset")))
        self._assignors = tuple(assignors) or assignors_of(self.config)
        self._is_started = self._is_closing = self._is_closed = False

    async def __aenter__(self) -> "Consumer":
        if self._is_started:
            raise KafkaException("a consumer can be started only once; create another one")
        self._is_started = True
        config, uniform = self.config, self._random.uniform
        read_committed = config.text("isolation.level") == "read_committed"
        self._metadata = ConsumerMetadata(
            config.retry_backoff(uniform),
            config.integer("metadata.max.age.ms"),
            self._subscriptions,
            equivalent_backoff=config.equivalent_response_backoff(uniform),
            creates_topics=config.boolean("allow.auto.create.topics"),
            includes_internal=not config.boolean("exclude.internal.topics"),
        )
        self._network = AsyncNetwork.open(
            config, self._metadata, max_in_flight=_MAX_IN_FLIGHT, random=self._random, clock=self._given_clock
        )
        self._clock = self._network.clock
        client = self._network.client
        settings = _fetcher_settings(config, read_committed=read_committed)
        self._fetcher = Fetcher(settings, self._subscriptions, self._metadata, client)
        backoff = backoff_at(RetrySite.OFFSET_RESET, config, uniform)
        self._offsets = OffsetFetcher(
            self._subscriptions,
            self._metadata,
            client,
            self._fetcher,
            self._clock,
            backoff,
            read_committed=read_committed,
        )
        self._topic_offsets = TopicOffsets(self._network, self._metadata, self._offsets, backoff)
        self._group: ConsumerGroup | None = None
        if config.value("group.id") is not None:
            self._group = ConsumerGroup(
                config, self._subscriptions, self._metadata, self._network, self._assignors, uniform
            )
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    # -- subscription and assignment -----------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str] | Pattern[str], *, listener: RebalanceListener | None = None) -> None:
        """Subscribe to topics, by name or by a pattern that matches whole names; the group assigns partitions.

        Raises:
            NoSubscriptionError: If partitions are assigned manually, or `group.id` is not set.
        """
        group = self._in_group("subscribe")
        if isinstance(topics, Pattern):
            self._subscriptions.subscribe_pattern(topics)
        else:
            self._subscriptions.subscribe(topics)
        group.listener = listener or RebalanceListener()
        self._network.wakeup()

    def subscription(self) -> set[str]:
        """Return the subscribed topics; of a pattern, those that match."""
        return set(self._subscriptions.topics)

    async def unsubscribe(self) -> None:
        """Remove all subscriptions and assignments, and leave the group."""
        self._ensure_open()
        if self._group is not None:
            await self._group.unsubscribe()
            await self._group.leave("the consumer unsubscribed", self._deadline_ms(None))
        self._subscriptions.unsubscribe()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign these partitions manually; those already assigned keep their positions.

        Raises:
            NoSubscriptionError: If the consumer is subscribed to topics.
        """
        self._ensure_open()
        self._subscriptions.assign(partitions)
        self._network.wakeup()

    def assignment(self) -> set[TopicPartition]:
        """Return the assigned partitions."""
        return set(self._subscriptions.assigned)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these partitions until `resume`; fetched records are kept."""
        self._ensure_open()
        for partition in partitions:
            self._subscriptions.state_of(partition).is_paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Undo `pause`."""
        self._ensure_open()
        for partition in partitions:
            self._subscriptions.state_of(partition).is_paused = False
        self._network.wakeup()

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return {partition for partition, state in self._subscriptions.items() if state.is_paused}

    # -- records -------------------------------------------------------------------------------------------------------

    async def poll(self, timeout_ms: Duration) -> list[ConsumerRecord]:
        """Return up to `max.poll.records` records, in offset order within each partition; none after the timeout.

        Raises:
            NoSubscriptionError: If nothing is subscribed or assigned.
            NoOffsetForPartitionError: If there is no position and no reset policy.
            OffsetOutOfRangeError: If the log does not contain a position and there is no reset policy.
            LogTruncationError: If the log was truncated below a position and there is no reset policy.
            KafkaException: For an unreadable record or a fatal error.
        """
        self._ensure_open()
        if not self._subscriptions.is_manual and not self._subscriptions.is_subscribed:
            raise NoSubscriptionError("nothing to read; subscribe to topics, or assign partitions")
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while True:
            until_ms = inf
            if self._group is not None:
                if not await self._group.poll(deadline_ms):
                    return []
                until_ms = self._group.next_ms()
            now_ms = self._clock.monotonic_ms()
            until_ms = min(until_ms, self._find_positions(now_ms))
            records = self._fetcher.collect(self._max_poll_records)
            until_ms = min(until_ms, self._fetcher.send(now_ms))  # fetch ahead while the application processes records
            if records or now_ms >= deadline_ms:
                try:
                    await yield_to_loop()  # a busy poll loop must not block heartbeats
                except asyncio.CancelledError:
                    self._return(records)
                    raise
                return records
            await self._network.wait(min(deadline_ms, until_ms))
            self._ensure_open()

    def _return(self, records: Sequence[ConsumerRecord]) -> None:
        """Move the positions back to records that `poll` collected and did not return, so that no commit loses them."""
        first = {TopicPartition(record.topic, record.partition): record.offset for record in reversed(records)}
        for partition, offset in first.items():
            state = self._subscriptions.get(partition)
            if state is not None and state.position is not None:
                state.seek(state.position._replace(offset=offset, offset_epoch=NO_EPOCH))

    def _find_positions(self, now_ms: float) -> float:
        """Request missing positions; return when to call again."""
        self._metadata.raise_fatal_error()
        for topic in self._metadata.cluster.topic_errors:
            self._metadata.raise_topic_error(topic)
        if not self._subscriptions.has_all_positions:
            lost = self._subscriptions.reset_initializing()
            if lost:
                raise NoOffsetForPartitionError(lost)
        return self._offsets.run_once(now_ms)

    # -- positions -----------------------------------------------------------------------------------------------------

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue at an offset; with a leader epoch, validate first that the log was not truncated."""
        self._ensure_open()
        given = with_metadata(offset)
        if given.offset < 0:
            raise ArgumentError(f"seek: offset: expected an integer of at least 0, got {given.offset}")
        state = self._subscriptions.state_of(partition)
        if given.leader_epoch != NO_EPOCH:
            self._metadata.update_last_seen_epoch_if_newer(partition, given.leader_epoch)
        leader = self._metadata.current_leader(partition)
        state.seek_unvalidated(FetchPosition(given.offset, given.leader_epoch, leader))
        self._network.wakeup()

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """Continue at the log start offsets."""
        self._reset(partitions, EARLIEST)

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """Continue at the log end offsets."""
        self._reset(partitions, LATEST)

    def _reset(self, partitions: Iterable[TopicPartition], to: OffsetReset) -> None:
        self._ensure_open()
        for partition in partitions:
            self._subscriptions.state_of(partition).reset_by(to)
        self._network.wakeup()

    async def position(self, partition: TopicPartition, *, timeout_ms: Duration | None = None) -> int:
        """Return the offset of the next record, once it is known; raise TimeoutException, or the errors of `poll`."""
        self._ensure_open()
        deadline_ms = self._deadline_ms(timeout_ms)
        while True:
            self._ensure_open()
            if self._group is not None:
                await self._group.poll(deadline_ms)
            now_ms = self._clock.monotonic_ms()
            position = self._subscriptions.state_of(partition).position
            if position is not None:
                return position.offset
            if now_ms >= deadline_ms:
                raise TimeoutException(f"the position of {partition} was not known in time")
            await self._network.wait(min(deadline_ms, self._find_positions(now_ms)))

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return the log end offset at the last fetch minus the position; None if unknown."""
        state = self._subscriptions.state_of(partition)
        end = state.end_offset(read_committed=self.config.text("isolation.level") == "read_committed")
        return None if state.position is None or end == NO_OFFSET else max(0, end - state.position.offset)

    # -- commits -------------------------------------------------------------------------------------------------------

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None, *, timeout_ms: Duration | None = None
    ) -> None:
        """Commit the given offsets, or the positions; retry until the timeout.

        Raises:
            CommitFailedError: If the group has removed this member.
            RebalanceInProgressException: If this member has to join the group again, or is joining; poll first.
            TimeoutException: If no attempt succeeds in time.
        """
        group = self._in_group("commit")
        consumed = self._subscriptions.all_consumed() if offsets is None else offsets
        await group.offsets.commit(consumed, self._deadline_ms(timeout_ms))

    def commit_later(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> "asyncio.Task[None]":
        """Start a commit without retries, within `default.api.timeout.ms`; the task also raises RetriableException."""
        group = self._in_group("commit")
        consumed = self._subscriptions.all_consumed() if offsets is None else offsets
        return group.commit_later(consumed, self._deadline_ms(None))

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: Duration | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets; None for a partition without one."""
        group = self._in_group("read committed offsets")
        return await group.offsets.committed(partitions, self._deadline_ms(timeout_ms))

    def group_metadata(self) -> GroupMetadata:
        """Return this member's identity when it joined, for a producer that sends offsets in a transaction.

        It does not change when the group removes this member, so that the broker then refuses the offsets.
        """
        group = self._in_group("return group metadata")
        return GroupMetadata(self.config.text("group.id"), *group.joined_generation)

    @property
    def is_rebalancing(self) -> bool:
        """Whether the consumer is joining the group; commits must wait for that."""
        return self._group is not None and self._group.is_rebalancing

    def _in_group(self, action: str) -> ConsumerGroup:
        self._ensure_open()
        if self._group is None:
            raise NoSubscriptionError(f"cannot {action}: group.id is not set")
        return self._group

    # -- topics and offsets --------------------------------------------------------------------------------------------

    async def partitions_for(self, topic: str, *, timeout_ms: Duration | None = None) -> Sequence[int]:
        """Return the partition indexes of a topic; raise TimeoutException if it is not found in time."""
        self._ensure_open()
        return await self._topic_offsets.partitions_of(topic, self._deadline_ms(timeout_ms))

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: Duration | None = None
    ) -> dict[TopicPartition, int]:
        """Return the log start offsets."""
        return await self._end_offsets(partitions, EARLIEST_TIMESTAMP, timeout_ms)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: Duration | None = None
    ) -> dict[TopicPartition, int]:
        """Return the high watermarks or, with read_committed, the last stable offsets."""
        return await self._end_offsets(partitions, LATEST_TIMESTAMP, timeout_ms)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], *, timeout_ms: Duration | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after each timestamp in ms; None if all records are older."""
        self._ensure_open()
        received = await self._topic_offsets.list_offsets(timestamps, self._deadline_ms(timeout_ms))
        return {
            partition: None
            if one.offset == NO_OFFSET
            else OffsetAndTimestamp(one.offset, one.timestamp, one.leader_epoch)
            for partition, one in received.items()
        }

    async def _end_offsets(
        self, partitions: Iterable[TopicPartition], timestamp: int, timeout_ms: float | None
    ) -> dict[TopicPartition, int]:
        self._ensure_open()
        requested = dict.fromkeys(partitions, timestamp)
        received = await self._topic_offsets.list_offsets(requested, self._deadline_ms(timeout_ms))
        return {partition: one.offset for partition, one in received.items()}

    def metrics(self, node_id: int | None = None) -> dict[str, float]:
        """Return KIP-13's `fetch-throttle-time-avg` and `-max` in ms, of one node or all."""
        if not self._is_started:
            self._ensure_open()
        now_ms = self._clock.monotonic_ms()
        return self._network.client.throttle_times.metrics("fetch", now_ms, node_id)

    # -- closing -------------------------------------------------------------------------------------------------------

    async def close(self, timeout_ms: Duration = 30_000) -> None:
        """Commit if `enable.auto.commit`, leave the group within `timeout_ms`, and close all connections."""
        if self._is_closing or not self._is_started:
            return
        self._is_closing = True
        if self._group is not None:  # not closed yet: the listener can still commit
            await self._group.close(self._clock.monotonic_ms() + timeout_ms)
        self._is_closed = True
        self._fetcher.close_sessions(self._clock.monotonic_ms())
        await self._network.close()

    def _ensure_open(self) -> None:
        if not self._is_started:
            raise KafkaException("the consumer is not started; use it within `async with`")
        self._network.raise_failure()
        if self._is_closed:
            raise KafkaException("the consumer is closed")

    def _deadline_ms(self, timeout_ms: Duration | None) -> float:
        return self._clock.monotonic_ms() + (self._api_timeout_ms if timeout_ms is None else timeout_ms)


def _fetcher_settings(config: ClientConfig, *, read_committed: bool) -> FetcherSettings:
    return FetcherSettings(
        min_bytes=config.integer("fetch.min.bytes"),
        max_bytes=config.integer("fetch.max.bytes"),
        max_wait_ms=config.integer("fetch.max.wait.ms"),
        max_partition_bytes=config.integer("max.partition.fetch.bytes"),
        reading=FetchSettings(checks_crcs=config.boolean("check.crcs"), read_committed=read_committed),
        rack=config.text("client.rack"),
    )
