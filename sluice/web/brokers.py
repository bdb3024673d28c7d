"""The brokers as the page shows them: state, possible actions and traffic."""

from collections import Counter

from msgspec import Struct

from sluice.broker.controller.controller import TRANSITIONS
from sluice.broker.network.socket_server import SocketServer
from sluice.broker.server.cluster_server import ClusterServer
from sluice.broker.server.upstream_state import UpstreamState

# Leaders are counted once in this many snapshots, because there may be many partitions.
_COUNT_LEADERS_EVERY = 4


class UpstreamNow(Struct, frozen=True, gc=False):
    """The state of the broker behind a broker of a proxy.

    reachable: whether the last connection to it was made
    in_flight: number of requests without a response yet
    """

    address: str
    reachable: bool
    in_flight: int


class BrokerNow(Struct, frozen=True, gc=False):
    """The state of a broker.

    fenced: whether the controller has fenced it
    can: actions that its state allows: start, stop, isolate, rejoin
    listeners: addresses by listener name
    leads: number of partitions that it leads; null at a proxy
    throttled: number of connections with a running throttle time
    requests_per_s, in_per_s, out_per_s: since the previous snapshot; in and out are bytes of records, at a proxy all
        bytes to and from the broker behind it
    upstream: at a proxy, the broker behind it
    """

    id: int
    state: str
    fenced: bool
    can: list[str]
    listeners: dict[str, str]
    leads: int | None
    connections: int
    throttled: int
    requests_per_s: int
    in_per_s: int
    out_per_s: int
    upstream: UpstreamNow | None = None


class _Counts(Struct, frozen=True):
    requests: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


class Brokers:
    def __init__(self, server: ClusterServer) -> None:
        self._server = server
        self._leads: Counter[int] = Counter()
        self._counts: dict[int, _Counts] = {}
        self._read_ms = 0.0

    def read(self, number: int) -> list[BrokerNow]:
        """Return the current state of each broker; `number` counts the snapshots from 0."""
        if number % _COUNT_LEADERS_EVERY == 0:
            topics = self._server.cluster.topics.values()
            self._leads = Counter(partition.leader for topic in topics for partition in topic.partitions)
        now_ms = self._server.cluster.runtime.clock.monotonic_ms()
        elapsed_ms, self._read_ms = now_ms - self._read_ms, now_ms
        return [self._seen(node_id, server, elapsed_ms) for node_id, server in self._server.servers.items()]

    def _seen(self, node_id: int, server: SocketServer, elapsed_ms: float) -> BrokerNow:
        cluster, upstream = self._server.cluster, self._server.upstream_state(node_id)
        now = self._count(node_id, upstream)
        before, self._counts[node_id] = self._counts.get(node_id, now), now
        state = cluster.controller.state(node_id)

        def per_s(after: int, before: int) -> int:
            return (
                max(0, round((after - before) / elapsed_ms * 1000)) if elapsed_ms else 0
            )  # counters may have been reset

        return BrokerNow(
            id=node_id,
            state=state.value,
            fenced=node_id in cluster.fenced,
            can=[event for event, states in TRANSITIONS.items() if state in states],
            listeners={endpoint.name: str(endpoint) for endpoint in server.endpoints},
            leads=self._leads[node_id] if upstream is None else None,
            connections=len(server.connections),
            throttled=self._server.brokers[node_id].throttled.delayed,
            requests_per_s=per_s(now.requests, before.requests),
            in_per_s=per_s(now.bytes_in, before.bytes_in),
            out_per_s=per_s(now.bytes_out, before.bytes_out),
            upstream=None
            if upstream is None
            else UpstreamNow(upstream.address, upstream.is_reachable, upstream.in_flight),
        )

    def _count(self, node_id: int, upstream: UpstreamState | None) -> _Counts:
        requests = sum(route.requests for route in self._server.servers[node_id].exchange.routes)
        if upstream is not None:
            return _Counts(requests, upstream.bytes_sent, upstream.bytes_received)
        topics = self._server.cluster.topics.values()
        traffic = [topic.traffic[node_id] for topic in topics if node_id in topic.traffic]
        return _Counts(
            requests=requests,
            bytes_in=sum(each.bytes_in for each in traffic),
            bytes_out=sum(each.bytes_out for each in traffic),
        )
