"""The progress of replicas, and its effects: high watermarks and in-sync replicas.

Follows Kafka's Partition (maybeIncrementLeaderHW, maybeShrinkIsr, maybeExpandIsr) and its fetchers. A partition has one
log, the leader's; a follower is only an offset:

- A follower *fetches* while it and the leader run and reach each other. It has everything appended more than
  `sluice.replication.delay.ms` ago: `Partition.replicated_offset`.
- Other followers are in `Partition.lagging_followers`, with their offsets. A follower that starts to fetch has caught
  up after the delay, leaves `lagging_followers`, and joins the ISR. If it is throttled, it fetches in steps.
- The high watermark is the lowest offset in the ISR. It does not move below min.insync.replicas, or while a follower
  catches up, which could otherwise never reach it.
- The leader, if it reaches the controller, removes a follower from the ISR that lags for `replica.lag.time.max.ms`.

A single broker has the delay too.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

from sluice.broker.metadata.topic import NO_LEADER, FollowerLag, Partition

from .cluster_state import ClusterState
from .replication_throttle import ReplicationThrottle


class Replication:
    def __init__(
        self,
        cluster: ClusterState,
        is_running: Callable[[int], bool],
        expand_isr: Callable[[Partition, int], None],
        shrink_isr: Callable[[Partition, int], bool],
    ) -> None:
        """`shrink_isr` returns False if the controller is unavailable."""
        self._cluster = cluster
        self._is_running = is_running
        self._expand_isr = expand_isr
        self._shrink_isr = shrink_isr
        self._delay_ms = cluster.config.integer("sluice.replication.delay.ms")
        self._lag_max_ms = cluster.config.integer("replica.lag.time.max.ms")
        self._throttle = ReplicationThrottle(cluster)
        self._next_fetches: dict[tuple[Partition, int], object] = {}  # of throttled followers

    def begin(self, partition: Partition) -> None:
        for node_id in partition.replicas:
            if node_id != partition.leader and node_id not in partition.isr:
                self.add(partition, node_id)
        self.update(partition)
        if partition.lagging_followers:  # deferred: a restored partition is not complete yet
            self._cluster.runtime.scheduler.schedule_once(
                self._delay_ms, partial(self.follow, partition, partition.replicas)
            )

    def appended(self, partition: Partition) -> None:
        if self._delay_ms:
            fetched = partial(self._on_fetched, partition, partition.log.log_end_offset, partition.leader_epoch)
            self._cluster.runtime.scheduler.schedule_once(self._delay_ms, fetched)

    def offset_of(self, partition: Partition, node_id: int) -> int:
        """Return the log end offset of a replica.

        For internal topics, it is the leader's: coordinators acknowledge writes before these are replicated, and none
        may be lost.
        """
        lag = partition.lagging_followers.get(node_id)
        if lag is not None and node_id != partition.leader:
            return lag.offset
        has_all = node_id == partition.leader or partition.leader == NO_LEADER  # the last leader is not behind
        if has_all or not self._delay_ms or partition.topic.is_internal:
            return partition.log.log_end_offset
        return partition.replicated_offset

    # -- fetching ------------------------------------------------------------------------------------------------------

    def broker_away(self, node_id: int) -> None:
        for partition in self._replicas_on(node_id):
            followers = partition.replicas if partition.leader == node_id else (node_id,)
            for follower in followers:
                if follower != partition.leader:
                    self._mark_lagging(partition, follower)
            self.update(partition)
        self._cluster.runtime.scheduler.schedule_once(self._lag_max_ms, partial(self._shrink, node_id))

    def broker_back(self, node_id: int) -> None:
        for partition in self._replicas_on(node_id):
            self.follow(partition, partition.replicas if partition.leader == node_id else (node_id,))

    def new_leader(self, partition: Partition) -> None:
        end, now_ms = partition.log.log_end_offset, self._now_ms()
        fetched = FollowerLag(partition.replicated_offset if self._delay_ms else end, now_ms)
        partition.lagging_followers = {
            node_id: FollowerLag(min(lag.offset, end), lag.since_ms)
            for node_id in partition.replicas
            if node_id != partition.leader
            for lag in (partition.lagging_followers.get(node_id, fetched),)
        }
        partition.replicated_offset = end
        self.follow(partition, partition.replicas)

    def follow(self, partition: Partition, followers: tuple[int, ...]) -> None:
        for node_id in followers:
            lag = partition.lagging_followers.get(node_id)
            if lag is None or not self._fetches(partition, node_id):
                continue
            end = partition.log.log_end_offset
            if node_id not in partition.isr:
                offset, wait_ms = self._throttle.fetch(partition, node_id, lag.offset)
                if offset < end:
                    partition.lagging_followers[node_id] = lag._replace(offset=offset)
                    self._follow_later(partition, node_id, wait_ms)
                    continue
            caught_up = partial(self._on_caught_up, partition, node_id, end, partition.leader_epoch)
            partition.lagging_followers[node_id] = lag._replace(target=end)
            if self._delay_ms and lag.offset < end:
                self._cluster.runtime.scheduler.schedule_once(self._delay_ms, caught_up)
            else:
                caught_up()
        self.update(partition)

    def configured(self, partition: Partition) -> None:
        """Let throttled followers fetch, as rates may have changed."""
        self.follow(partition, tuple(id_ for id_, lag in partition.lagging_followers.items() if lag.target is None))

    def _follow_later(self, partition: Partition, node_id: int, wait_ms: float) -> None:
        replica = partition, node_id
        waiting = self._next_fetches[replica] = object()  # replaces an earlier one

        def fetch() -> None:
            if self._next_fetches.get(replica) is waiting:
                del self._next_fetches[replica]
                if not partition.deleted:
                    self.follow(partition, (node_id,))

        if wait_ms < math.inf:
            self._cluster.runtime.scheduler.schedule_once(wait_ms, fetch)

    def catch_up(self) -> None:
        for topic in list(self._cluster.topics.values()):
            for partition in topic.partitions:
                for node_id in partition.replicas:
                    if node_id not in partition.lagging_followers and self._fetches(partition, node_id):
                        self._expand_isr(partition, node_id)

    def add(self, partition: Partition, node_id: int) -> None:
        partition.lagging_followers[node_id] = FollowerLag(partition.log.log_start_offset, self._now_ms())

    # -- effects -------------------------------------------------------------------------------------------------------

    def update(self, partition: Partition) -> None:
        log, isr = partition.log, partition.isr
        followers = [node_id for node_id in isr if node_id != partition.leader]
        simulated = self._delay_ms > 0 and (followers or len(self._cluster.brokers) == 1)
        stays = len(isr) < partition.min_isr or any(
            one.target is not None for one in partition.lagging_followers.values()
        )
        log.has_followers = (
            bool(simulated) or stays or any(node_id in partition.lagging_followers for node_id in followers)
        )
        if stays or partition.deleted:
            return
        ends = [
            partition.lagging_followers[node_id].offset
            for node_id in followers
            if node_id in partition.lagging_followers
        ]
        ends.append(partition.replicated_offset if simulated else log.log_end_offset)
        if log.advance_high_watermark(min(ends)):
            self._cluster.high_watermark_moved(partition)

    def _on_fetched(self, partition: Partition, offset: int, leader_epoch: int) -> None:
        if self._is_of(partition, leader_epoch) and self._is_running(partition.leader):
            partition.replicated_offset = max(partition.replicated_offset, offset)
            self.update(partition)

    def _on_caught_up(self, partition: Partition, node_id: int, offset: int, leader_epoch: int) -> None:
        lag = partition.lagging_followers.get(node_id)
        if lag is not None and lag.target == offset and self._is_of(partition, leader_epoch):
            del partition.lagging_followers[node_id]
            partition.replicated_offset = max(partition.replicated_offset, offset)
            self._expand_isr(partition, node_id)
            self.update(partition)

    def _shrink(self, node_id: int) -> None:
        waits = False
        oldest_ms = self._now_ms() - self._lag_max_ms
        for partition in self._replicas_on(node_id):
            lag = partition.lagging_followers.get(node_id)
            if lag is None or node_id not in partition.isr or not self._is_running(partition.leader):
                continue
            lags = lag.since_ms <= oldest_ms and lag.offset < partition.log.log_end_offset
            if not lags or not self._shrink_isr(partition, node_id):
                waits = True
        if waits:
            self._cluster.runtime.scheduler.schedule_once(self._lag_max_ms / 2, partial(self._shrink, node_id))

    def _mark_lagging(self, partition: Partition, node_id: int) -> None:
        lag = partition.lagging_followers.get(node_id)
        since_ms = self._now_ms() if lag is None else lag.since_ms
        partition.lagging_followers[node_id] = FollowerLag(self.offset_of(partition, node_id), since_ms)

    def _fetches(self, partition: Partition, node_id: int) -> bool:
        leader, is_running = partition.leader, self._is_running
        return leader != NO_LEADER and node_id != leader and is_running(leader) and is_running(node_id)

    def _is_of(self, partition: Partition, leader_epoch: int) -> bool:
        return partition.leader_epoch == leader_epoch and not partition.deleted

    def _replicas_on(self, node_id: int) -> Iterator[Partition]:
        for topic in list(self._cluster.topics.values()):
            for partition in topic.partitions:
                if node_id in partition.replicas:
                    yield partition

    def _now_ms(self) -> float:
        return self._cluster.runtime.clock.monotonic_ms()
