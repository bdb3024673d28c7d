"""What a consumer does with its group, poll by poll: rebalances with their listener, committed offsets as first
positions, and commits by time. Kafka's ConsumerCoordinator.

Without cooperation (range, roundrobin) a member gives up all it has before it joins; with it (KIP-429: all configured
assignors are cooperative) it keeps reading, gives up what the new assignment has not, and joins once more, so that
others get that. Before either, `enable.auto.commit` commits. What is lost because the group went on without this member
is told by `on_partitions_lost`: nothing can be committed for it any more.

Joining, and asking for committed offsets, go on when a `poll` has ended; the next one takes them up.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from math import inf
from typing import TypeVar

from sluice.client.backoff import Backoff, Uniform
from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.config import ClientConfig
from sluice.client.consumer.metadata import ConsumerMetadata
from sluice.client.consumer.subscription_state import FetchPosition, FetchState, SubscriptionState
from sluice.client.errors import KafkaException, RetriableException
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.network.asyncio_network import AsyncNetwork
from sluice.client.retry_sites import RetrySite, backoff_at

from .abstract_coordinator import GroupCoordinator
from .assignors import ASSIGNORS, Assignor
from .heartbeat import Heartbeats
from .membership import Generation, Joined, Membership, MembershipSettings
from .offsets import GroupOffsets

log = logging.getLogger("sluice.client")

T = TypeVar("T")


class RebalanceListener:
    """Is told what a rebalance changes, within `poll`; and `close`, of what is given up then. To be inherited."""

    async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """These are given up now; what was read of them can still be committed."""

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """These came."""

    async def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """These were given to others already. If it is not overridden, they are revoked."""
        await self.on_partitions_revoked(partitions)


class ConsumerGroup:
    """One consumer's group."""

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
            self._coordinator, backoff(RetrySite.OFFSET_COMMIT), self._speaks_as, self._membership.rejected
        )
        self._matched_update = -1
        self._joining: asyncio.Task[Joined] | None = None
        self._finding: asyncio.Task[dict[TopicPartition, OffsetAndMetadata | None]] | None = None
        self._committing: set[asyncio.Task[None]] = set()
        self._beating = asyncio.ensure_future(self._membership.beat(self._commit_retry))

    @property
    def generation(self) -> Generation:
        """As whom this consumer is in the group now."""
        return self._membership.generation

    @property
    def is_rebalancing(self) -> bool:
        """Whether this consumer is joining: until that is done, nothing is committed."""
        return self._joining is not None

    def _speaks_as(self) -> Generation | None:
        if self._subscriptions.is_manual:
            return Generation()
        return None if self._membership.is_out else self._membership.generation

    # -- poll by poll ------------------------------------------------------------------------------------------------

    async def poll(self, deadline_ms: float) -> bool:
        """Does what is due; whether the assignment, and first positions, are there. Raises what is fatal."""
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
                await self._joined(joining.result())
        self._commit_by_time(now_ms)
        return await self._find_positions(deadline_ms)

    def next_ms(self) -> float:
        """When a poll that waits has to look again, if nothing happens before."""
        return self._next_commit_ms if self._commits else inf

    def rejoin(self, reason: str) -> None:
        """With the next poll."""
        self._membership.rejoin(reason)

    def _match_pattern(self) -> None:
        metadata = self._metadata
        if self._subscriptions.pattern is not None and self._matched_update != metadata.update_version:
            self._matched_update = metadata.update_version
            self._subscriptions.matched(metadata.cluster.topics)

    async def _find_positions(self, deadline_ms: float) -> bool:
        """Begins where the group has committed."""
        if self._finding is None:
            missing = self._subscriptions.in_state(FetchState.INITIALIZING)
            if not missing:
                return True
            self._finding = asyncio.ensure_future(self.offsets.committed(missing, inf))
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
        return bool(done) and not task.cancelled()  # which it is where the consumer is closed meanwhile

    # -- rebalances --------------------------------------------------------------------------------------------------

    async def _prepare_to_join(self) -> None:
        if self._commits and not self._membership.is_out:
            deadline_ms = self._clock.monotonic_ms() + self._rebalance_timeout_ms
            await self._logged(self.offsets.commit(self._subscriptions.all_consumed(), deadline_ms))
        subscriptions = self._subscriptions
        owned = set(subscriptions.assigned)
        if self._membership.is_out:
            await self._notify_listener(self.listener.on_partitions_lost, owned)
            subscriptions.assign_from_subscribed(())
            return
        wanted = subscriptions.topics if self._is_cooperative else frozenset()
        revoked = {partition for partition in owned if partition.topic not in wanted}
        await self._revoke(revoked, owned - revoked)

    async def _joined(self, joined: Joined) -> None:
        subscriptions = self._subscriptions
        owned = set(subscriptions.assigned)
        assigned = set(joined.partitions)
        revoked = owned - assigned
        if revoked:
            await self._revoke(revoked, owned - revoked)
            self._membership.rejoin("what was given up can be given to others")
        subscriptions.assign_from_subscribed(sorted(assigned))
        self._metadata.request_update_for_new_topics()
        log.info("assigned", extra={"group": self._coordinator.group_id, "partitions": len(assigned)})
        await self.listener.on_partitions_assigned(sorted(assigned - owned))

    async def _revoke(self, revoked: set[TopicPartition], kept: set[TopicPartition]) -> None:
        """The application may still commit what it read: it is told before anything is taken."""
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

    # -- commits -----------------------------------------------------------------------------------------------------

    def commit_later(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> "asyncio.Task[None]":
        """Sends a commit that nobody has to wait for."""
        task = asyncio.ensure_future(self.offsets.commit_once(offsets, inf))
        self._committing.add(task)
        task.add_done_callback(self._commit_ended)
        return task

    def _commit_ended(self, task: "asyncio.Task[None]") -> None:
        self._committing.discard(task)
        if not task.cancelled():
            task.exception()  # who does not look does not want to know

    def _commit_by_time(self, now_ms: float) -> None:
        if not self._commits or now_ms < self._next_commit_ms:
            return
        self._next_commit_ms = now_ms + self._commit_interval_ms
        consumed = self._subscriptions.all_consumed()
        if consumed and self._speaks_as() is not None:
            self.commit_later(consumed).add_done_callback(self._committed_by_time)

    def _committed_by_time(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        log.warning("a commit by time failed", extra={"group": self._coordinator.group_id, "error": str(error)})
        if isinstance(error, RetriableException):
            retry_ms = self._clock.monotonic_ms() + self._commit_retry.backoff(0)
            self._next_commit_ms = min(self._next_commit_ms, retry_ms)

    async def _logged(self, commit: Awaitable[None]) -> None:
        try:
            await commit
        except KafkaException as error:
            log.warning("a commit failed", extra={"group": self._coordinator.group_id, "error": str(error)})

    # -- the end -----------------------------------------------------------------------------------------------------

    async def unsubscribe(self) -> None:
        """Gives up what there is, and leaves."""
        await self._stop(self._joining, self._finding)
        self._joining = self._finding = None
        owned = set(self._subscriptions.assigned)
        if not self._subscriptions.is_manual:
            lost = self._membership.is_out
            await self._notify_listener(
                self.listener.on_partitions_lost if lost else self.listener.on_partitions_revoked, owned
            )

    async def leave(self, reason: str, deadline_ms: float) -> None:
        """Leaves the group."""
        await self._membership.leave(reason, deadline_ms)
        self._membership.rejoin(reason)

    async def close(self, deadline_ms: float) -> None:
        """Commits what was handed out, gives it up, and leaves."""
        if self._commits and self._speaks_as() is not None:
            await self._logged(self.offsets.commit(self._subscriptions.all_consumed(), deadline_ms))
        if self._committing:
            await asyncio.wait(set(self._committing), timeout=max(0, deadline_ms - self._clock.monotonic_ms()) / 1e3)
        await self._stop(self._beating)
        await self.unsubscribe()
        await self._membership.leave("the consumer is being closed", deadline_ms)
        await self._stop(*self._committing)

    async def _stop(self, *tasks: "asyncio.Task[T] | None") -> None:
        running = [task for task in tasks if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def assignors_of(config: ClientConfig) -> tuple[Assignor, ...]:
    """Those of `partition.assignment.strategy`, by Kafka's names or those of its classes. Raises ConfigError."""
    found = []
    for name in config.names("partition.assignment.strategy"):
        short = _CLASSES.get(name.rpartition(".")[2], name)
        if short not in ASSIGNORS:
            raise config.error(f"partition.assignment.strategy={name}: must be of {', '.join(ASSIGNORS)}")
        found.append(ASSIGNORS[short])
    return tuple(found)


_CLASSES = {
    "CooperativeStickyAssignor": "cooperative-sticky",
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
}


def _settings(config: ClientConfig, assignors: tuple[Assignor, ...]) -> MembershipSettings:
    return MembershipSettings(
        session_timeout_ms=config.integer("session.timeout.ms"),
        rebalance_timeout_ms=config.integer("max.poll.interval.ms"),
        instance_id=config.text_or_none("group.instance.id"),
        assignors=assignors,
        request_timeout_ms=config.integer("request.timeout.ms"),
    )
