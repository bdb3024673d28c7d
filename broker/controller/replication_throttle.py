"""Replication quotas (KIP-73): the bandwidth of followers that are not in sync, as in Kafka's ReplicationQuotaManager.

`leader.replication.throttled.rate` limits what a broker sends for the partitions in which its replica is listed by the
topic's `leader.replication.throttled.replicas`; the configs of followers limit what a broker receives. All throttled
replicas of a broker share its rate. A follower fetches at least one batch, and waits until both brokers are within
their rates. Different on purpose: the wait is the size divided by the rate, without Kafka's average over windows.
"""

import math

from sluice.broker.metadata.topic import Partition

from .cluster_state import ClusterState

_ALL = ("*",)


class _Debt:
    """The bytes above a rate."""

    __slots__ = ("_at_ms", "_bytes")

    def __init__(self) -> None:
        self._bytes = self._at_ms = 0.0

    def add(self, size: int) -> None:
        self._bytes += size

    def wait_ms(self, bytes_per_s: int, now_ms: float) -> float:
        self._bytes = max(0.0, self._bytes - bytes_per_s * (now_ms - self._at_ms) / 1000)
        self._at_ms = now_ms
        if not self._bytes:
            return 0.0
        return self._bytes / bytes_per_s * 1000 if bytes_per_s else math.inf


class ReplicationThrottle:
    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._debts: dict[tuple[str, int], _Debt] = {}  # by role and node id

    def fetch(self, partition: Partition, follower: int, offset: int) -> tuple[int, float]:
        """Return the offset up to which a follower can fetch from `offset`, and the time until the next fetch."""
        log = partition.log
        roles = (("leader", partition.leader), ("follower", follower))
        rates = {role: rate for role in roles if (rate := self._rate(partition, *role)) is not None}
        if not rates:
            return log.log_end_offset, 0.0
        wait_ms = self._wait_ms(rates)
        if wait_ms:
            return offset, wait_ms
        start = max(offset, log.log_start_offset)
        max_bytes = self._cluster.brokers[follower].config.integer("replica.fetch.max.bytes")
        read = log.read(start, max_bytes, log.log_end_offset, True)
        for role in rates:
            self._debts[role].add(read.size)
        return read.next_offset if read.size else log.log_end_offset, self._wait_ms(rates)

    def _wait_ms(self, rates: dict[tuple[str, int], int]) -> float:
        now_ms = self._cluster.runtime.clock.monotonic_ms()
        return max(self._debts.setdefault(role, _Debt()).wait_ms(rate, now_ms) for role, rate in rates.items())

    def _rate(self, partition: Partition, role: str, node_id: int) -> int | None:
        listed = partition.topic.config.names(f"{role}.replication.throttled.replicas")
        if listed != _ALL and f"{partition.index}:{node_id}" not in listed:
            return None
        rate = self._cluster.brokers[node_id].config.value(f"{role}.replication.throttled.rate")
        assert rate is None or isinstance(rate, int)
        return rate
