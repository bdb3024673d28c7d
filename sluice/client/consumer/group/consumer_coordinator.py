"""The group operations of a consumer's `poll`: rebalances, committed offsets as initial positions, automatic commits.

Kafka's ConsumerCoordinator. An eager member revokes all partitions before it joins. A cooperative one (KIP-429: all
configured assignors are cooperative) revokes what the new assignment omits, and joins again. With `enable.auto.commit`,
a commit precedes each join.

Joins and offset lookups continue in the background between polls.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from math import inf
from typing import TypeVar

from sluice.client.backoff import Backoff, Uniform
from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.config import ClientConfig
from sluice.client.consumer.metadata import ConsumerMetadata
from sluice.client.consumer.subscription_state import FetchPosition, FetchState, SubscriptionState
from sluice.client.errors import KafkaException, RebalanceInProgressException, RetriableException
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.network.asyncio_network import AsyncNetwork
from sluice.client.retry_sites import RetrySite, backoff_at
from sluice.text.error_text import one_of

from .abstract_coordinator import GroupCoordinator
from .assignors import ASSIGNORS, Assignor
from .heartbeat import Heartbeats
from .membership import Generation, Joined, Membership, MembershipSettings
from .offsets import CommitFailedError, GroupOffsets

log = logging.getLogger("sluice.client")

T = TypeVar("T")


class RebalanceListener:
    """A base class for callbacks about rebalances, called within `poll`, `unsubscribe` and `close`."""

    async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Handle partitions that are being revoked; their offsets can still be committed."""

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Handle new partitions."""

    async def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Handle partitions that already belong to others; calls `on_partitions_revoked` by default."""
        await self.on_partitions_revoked(partitions)


class ConsumerGroup:
    def __init__(
        self,
        config: ClientConfig,
        subscriptions: SubscriptionState,
        metadata: ConsumerMetadata,
        network: AsyncNetwork,
        assignors: tuple[Assignor, ...],
        uniform: Uniform,
    ) -> None:
        def backoff(site: RetrySite) -> Backoff:
            return backoff_at(site, config, uniform)

        self.listener = RebalanceListener()
        self._subscriptions = subscriptions
        self._metadata = metadata
        self._clock = network.clock
        self._network = network
        self._is_cooperative = all(assignor.is_cooperative for assignor in assignors)
        self._commits = config.boolean("enable.auto.commit")
        self._commit_interval_ms = config.integer("auto.commit.interval.ms")
        self._commit_retry = backoff(RetrySite.AUTO_COMMIT)
        self._next_commit_ms = self._clock.monotonic_ms() + self._commit_interval_ms
        self._rebalance_timeout_ms = config.integer("max.poll.interval.ms")
        self._coordinator = GroupCoordinator(config.text("group.id"), network, backoff(RetrySite.COORDINATOR_LOOKUP))
        heartbeats = Heartbeats(
            config.integer("heartbeat.interval.ms"),
            config.integer("session.timeout.ms"),
            self._rebalance_timeout_ms,
            backoff(RetrySite.HEARTBEAT),
        )
        self._membership = Membership(
            _settings(config, assignors),
            self._coordinator,
            subscriptions,
            metadata,
            network,
            heartbeats,
            backoff(RetrySite.JOIN_GROUP),
        )
        self.offsets = GroupOffsets(
            self._coordinator, backoff(RetrySite.OFFSET_COMMIT), self._commit_generation, self._membership.rejected
        )
        # Also after the group has removed this member, so that a transaction that it is in cannot commit offsets.
        self.joined_generation = Generation(instance_id=config.text_or_none("group.instance.id"))
        self._matched_update = -1
        self._joining: asyncio.Task[Joined | None] | None = None
        self._finding: asyncio.Task[dict[TopicPartition, OffsetAndMetadata | None]] | None = None
        self._found_for: tuple[frozenset[TopicPartition], Generation] | None = None
        self._committing: set[asyncio.Task[None]] = set()
        self._heartbeat_task = network.start(
            "the heartbeats", partial(self._membership.send_heartbeats, self._commit_retry)
        )

    @property
    def is_rebalancing(self) -> bool:
        """Whether this consumer is joining; there are no commits until that is complete."""
        return self._joining is not None

    @property
    def _may_commit(self) -> bool:
        return self._subscriptions.is_manual or self._membership.is_stable

    def _commit_generation(self) -> Generation:
        """Return what identifies this member in a commit; raise CommitFailedError or RebalanceInProgressException.

        While a member joins, the broker would read its commit only after it has responded to JoinGroup.
        """
        if self._may_commit:
            return Generation() if self._subscriptions.is_manual else self._membership.generation
        if self._joining is not None and not self._joining.done():
            raise RebalanceInProgressException("this consumer is joining the group; poll, and then commit again")
        raise CommitFailedError("this consumer is not a member of the group, which has removed it")

    # -- poll ----------------------------------------------------------------------------------------------------------

    async def poll(self, deadline_ms: float) -> bool:
        """Run due operations; return whether assignment and initial positions are known."""
        now_ms = self._clock.monotonic_ms()
        self._membership.heartbeats.polled(now_ms)
        subscriptions = self._subscriptions
        if subscriptions.is_subscribed:
            self._match_pattern()
            while self._joining is not None or self._membership.needs_to_join():
                if self._joining is None:
                    await self._prepare_to_join()
                    self._joining = asyncio.ensure_future(self._membership.join())
                if not await self._is_done(self._joining, deadline_ms):
                    return False
                joining, self._joining = self._joining, None
                joined = joining.result()
                if joined is not None:
                    await self._joined(joined)
        self._commit_by_time(now_ms)
        return await self._find_positions(deadline_ms)

    def next_ms(self) -> float:
        return self._next_commit_ms if self._commits else inf

    def _match_pattern(self) -> None:
        metadata = self._metadata
        if self._subscriptions.pattern is not None and self._matched_update != metadata.update_version:
            self._matched_update = metadata.update_version
            self._subscriptions.matched(metadata.cluster.topics)

    async def _find_positions(self, deadline_ms: float) -> bool:
        """Return whether the lookup is complete."""
        # A lookup for another assignment would lack partitions, as in Kafka's PendingCommittedOffsetRequest.
        wanted = frozenset(self._subscriptions.in_state(FetchState.INITIALIZING)), self._membership.generation
        if self._finding is not None and self._found_for != wanted:
            await self._stop(self._finding)
            self._finding = None
        if not wanted[0]:
            return True
        if self._finding is None:
            self._finding, self._found_for = asyncio.ensure_future(self.offsets.committed(wanted[0], inf)), wanted
        if not await self._is_done(self._finding, deadline_ms):
            return False
        finding, self._finding = self._finding, None
        for partition, committed in finding.result().items():
            state = self._subscriptions.get(partition)
            if committed is None or state is None or state.state is not FetchState.INITIALIZING:
                continue
            self._metadata.update_last_seen_epoch_if_newer(partition, committed.leader_epoch)
            leader = self._metadata.current_leader(partition)
            state.seek_unvalidated(FetchPosition(committed.offset, committed.leader_epoch, leader))
        return True

    async def _is_done(self, task: "asyncio.Task[T]", deadline_ms: float) -> bool:
        timeout_s = max(0.0, deadline_ms - self._clock.monotonic_ms()) / 1e3
        done, _ = await asyncio.wait([task], timeout=timeout_s)
        return bool(done) and not task.cancelled()  # `close` cancels it

    # -- rebalances ----------------------------------------------------------------------------------------------------

    async def _prepare_to_join(self) -> None:
        if self._commits and not self._membership.has_no_generation:
            deadline_ms = self._clock.monotonic_ms() + self._rebalance_timeout_ms
            await self._logged(self.offsets.commit(self._subscriptions.all_consumed(), deadline_ms))
        subscriptions = self._subscriptions
        owned = set(subscriptions.assigned)
        if self._membership.has_no_generation:
            await self._notify_listener(self.listener.on_partitions_lost, owned)
            subscriptions.assign_from_subscribed(())
            return
        wanted = subscriptions.topics if self._is_cooperative else frozenset()
        revoked = {partition for partition in owned if partition.topic not in wanted}
        await self._revoke(revoked, owned - revoked)

    async def _joined(self, joined: Joined) -> None:
        self.joined_generation = joined.generation
        subscriptions = self._subscriptions
        owned = set(subscriptions.assigned)
        assigned = set(joined.partitions)
        revoked = owned - assigned
        if revoked:
            await self._revoke(revoked, owned - revoked)
            self._membership.rejoin("revoked partitions can be assigned to other members")
        subscriptions.assign_from_subscribed(sorted(assigned))
        self._metadata.request_update_for_new_topics()
        log.info("assigned", extra={"group": self._coordinator.group_id, "partitions": len(assigned)})
        await self.listener.on_partitions_assigned(sorted(assigned - owned))

    async def _revoke(self, revoked: set[TopicPartition], kept: set[TopicPartition]) -> None:
        """Call the listener, which can still commit; then remove the partitions."""
        if revoked:
            for partition in revoked:
                self._subscriptions.state_of(partition).is_pending_revocation = True
            await self._notify_listener(self.listener.on_partitions_revoked, revoked)
            self._subscriptions.assign_from_subscribed(sorted(kept))

    async def _notify_listener(
        self, callback: Callable[[Collection[TopicPartition]], Awaitable[None]], partitions: set[TopicPartition]
    ) -> None:
        if partitions:
            await callback(sorted(partitions))

    # -- commits -------------------------------------------------------------------------------------------------------

    def commit_later(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline_ms: float = inf
    ) -> "asyncio.Task[None]":
        task = asyncio.ensure_future(self.offsets.commit_once(offsets, deadline_ms))
        self._committing.add(task)
        task.add_done_callback(self._commit_ended)
        return task

    def _commit_ended(self, task: "asyncio.Task[None]") -> None:
        self._committing.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved: the caller may ignore the task

    def _commit_by_time(self, now_ms: float) -> None:
        if not self._commits or now_ms < self._next_commit_ms:
            return
        self._next_commit_ms = now_ms + self._commit_interval_ms
        consumed = self._subscriptions.all_consumed()
        if consumed and self._may_commit:
            self.commit_later(consumed).add_done_callback(self._committed_by_time)

    def _committed_by_time(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        log.warning("automatic commit failed", extra={"group": self._coordinator.group_id, "error": str(error)})
        if isinstance(error, RetriableException):
            retry_ms = self._clock.monotonic_ms() + self._commit_retry.backoff(0)
            self._next_commit_ms = min(self._next_commit_ms, retry_ms)

    async def _logged(self, commit: Awaitable[None]) -> None:
        try:
            await commit
        except KafkaException as error:
            log.warning("commit failed", extra={"group": self._coordinator.group_id, "error": str(error)})

    # -- leaving -------------------------------------------------------------------------------------------------------

    async def unsubscribe(self) -> None:
        await self._stop(self._joining, self._finding)
        self._joining = self._finding = None
        owned = set(self._subscriptions.assigned)
        if not self._subscriptions.is_manual:
            lost = self._membership.has_no_generation
            await self._notify_listener(
                self.listener.on_partitions_lost if lost else self.listener.on_partitions_revoked, owned
            )

    async def leave(self, reason: str, deadline_ms: float) -> None:
        await self._membership.leave(reason, deadline_ms)
        self._membership.rejoin(reason)

    async def close(self, deadline_ms: float) -> None:
        """Commit if automatic, revoke all partitions, and leave."""
        if self._commits and self._may_commit:
            await self._logged(self.offsets.commit(self._subscriptions.all_consumed(), deadline_ms))
        if self._committing:
            await asyncio.wait(set(self._committing), timeout=max(0, deadline_ms - self._clock.monotonic_ms()) / 1e3)
        await self._stop(self._heartbeat_task)
        await self.unsubscribe()
        await self._membership.leave("the consumer is being closed", deadline_ms)
        await self._stop(*self._committing)

    async def _stop(self, *tasks: "asyncio.Task[T] | None") -> None:
        running = [task for task in tasks if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def assignors_of(config: ClientConfig) -> tuple[Assignor, ...]:
    """Return the assignors of `partition.assignment.strategy`; raise ConfigError."""
    found = []
    for name in config.names("partition.assignment.strategy"):
        short = _CLASSES.get(name.rpartition(".")[2], name)
        if short not in ASSIGNORS:
            raise config.error(f"partition.assignment.strategy: {one_of(ASSIGNORS, name)}")
        found.append(ASSIGNORS[short])
    return tuple(found)


_CLASSES = {
    "CooperativeStickyAssignor": "cooperative-sticky",
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
}


def _settings(config: ClientConfig, assignors: tuple[Assignor, ...]) -> MembershipSettings:
    return MembershipSettings(
        session_timeout_ms=config.integer("session.timeout.ms"),
        rebalance_timeout_ms=config.integer("max.poll.interval.ms"),
        instance_id=config.text_or_none("group.instance.id"),
        assignors=assignors,
        request_timeout_ms=config.integer("request.timeout.ms"),
        rack=config.text("client.rack"),
    )
