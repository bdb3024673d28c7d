"""Prometheus collectors over the plain integers that the request path counts.

Clients choose their ids, so `sluice.metrics.client.ids.max` limits how many have series: the first ones, until their
sensors expire; selection by rate would make counters jump. The others are added up as `__other__`. Fault rules have the
same limit.

A broker reports log and partition metrics for its replicas, traffic for the partitions that it led.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from math import nan
from operator import attrgetter
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from sluice.broker.broker import Broker
from sluice.broker.exchange.route import Route
from sluice.broker.metadata.topic import Partition
from sluice.broker.throttling.request_charges import OTHER
from sluice.metrics import METRICS, REQUEST_SECONDS_BOUNDS, SOCKET_SERVER, THROTTLE_SECONDS_BOUNDS
from sluice.protocol.errors import name_of
from sluice.purgatory.timer import LATENESS_BOUNDS_MS
from sluice.quotas.entity import sanitize
from sluice.quotas.manager import ClientQuotaManager, ClientUsage
from sluice.quotas.mutation_quota import MutationUsage
from sluice.quotas.sensor import UNLIMITED
from sluice.version import __version__

from .cluster_server import ClusterServer
from .upstream_state import UpstreamState

if TYPE_CHECKING:
    from sluice.broker.faults.engine import FaultEngine

# Names of Kafka's bean attributes by kind of quota manager.
_RATE: Callable[[ClientUsage], float] = attrgetter("rate")
_WAIT: Callable[[ClientUsage], float] = attrgetter("throttle_time_avg_ms")
_ATTRIBUTES: dict[str, dict[str, Callable[[ClientUsage], float]]] = {
    "Produce": {"byte_rate": _RATE, "throttle_time": _WAIT},
    "Fetch": {"byte_rate": _RATE, "throttle_time": _WAIT},
    "Request": {"request_time": _RATE, "throttle_time": _WAIT},
    "ControllerMutation": {
        "mutation_rate": _RATE,
        "tokens": lambda usage: usage.tokens if isinstance(usage, MutationUsage) else nan,
        "throttle_time": _WAIT,
    },
}

# Kafka's names of the fields of AuthenticationCounts.
_AUTHENTICATIONS = {
    "successful_authentication_total": "successful",
    "successful_authentication_no_reauth_total": "successful_no_reauth",
    "failed_authentication_total": "failed",
    "successful_reauthentication_total": "successful_again",
    "failed_reauthentication_total": "failed_again",
    "expired_connections_killed_count": "expired_connections_killed",
}


class _BrokerMetrics:
    def __init__(self, cluster: ClusterServer, node_id: int) -> None:
        self._cluster = cluster
        self._broker = cluster.brokers[node_id]
        self._server = cluster.servers[node_id]
        self._upstream = cluster.upstream_state(node_id)

    def collect(self) -> Iterator[Metric]:
        yield from self._state()
        yield from self._requests()
        yield from self._purgatories()
        yield from self._quotas()
        yield from self._accepting()
        yield from self._authentications()
        yield from self._faults()
        if self._upstream is not None:
            yield from _forwarded(self._upstream)
            return
        yield from self._logs()
        yield from self._topics()
        yield from self._fetch_sessions()
        yield from self._shares()

    def _state(self) -> Iterator[Metric]:
        broker, server = self._broker, self._server
        yield _family("sluice_build_info", [([__version__], 1)])
        yield _one("sluice_connections", len(server.connections))
        yield _one("sluice_connections_total", server.accepted)
        yield _one("sluice_throttled_connections", len(broker.throttled))
        yield _one("sluice_quota_shadow", int(broker.throttler.is_shadow))

    def _logs(self) -> Iterator[Metric]:
        broker = self._broker
        yield _one("sluice_log_bytes", sum(t.log.size_in_bytes for t in _partitions(broker)))
        yield _one("sluice_topics", len(broker.metadata.topics))
        yield _one("sluice_partitions", sum(1 for _ in _partitions(broker)))
        telemetry = Broker.telemetry.if_made(broker)
        yield _one("sluice_telemetry_pushes_total", telemetry.pushes if telemetry else 0)
        yield _one("sluice_telemetry_bytes_total", telemetry.pushed_bytes if telemetry else 0)

    def _requests(self) -> Iterator[Metric]:
        routes = sorted(self._server.exchange.routes, key=lambda route: (route.api_name, route.version))
        rows: list[tuple[list[str], float]] = []
        for route in routes:
            good = route.requests - sum(route.errors.values())
            by_error = [("NONE", good)] if good else []
            by_error += [(name_of(code), count) for code, count in sorted(route.errors.items())]
            rows += [([route.api_name, str(route.version), error], count) for error, count in by_error]
        yield _family("sluice_requests_total", rows)
        yield _histogram("sluice_request_duration_seconds", _durations(routes), REQUEST_SECONDS_BOUNDS)

    def _purgatories(self) -> Iterator[Metric]:
        broker, replicas = self._broker, self._broker.replicas
        purgatories = [broker.throttled]
        if self._upstream is None:
            purgatories = [replicas.fetches, replicas.produces, replicas.delete_records, broker.throttled]
        if broker.fault_waits is not None:
            purgatories.append(broker.fault_waits)
        if self._server.acceptor is not None:
            purgatories.append(self._server.acceptor.waiting)
        if (groups := Broker.groups.if_made(broker)) is not None:
            purgatories += [groups.rebalances, groups.heartbeats]
        if (shares := Broker.share_partitions.if_made(broker)) is not None:
            purgatories.append(shares.locks)
        yield _family("sluice_purgatory_operations", [([p.name], p.delayed) for p in purgatories])
        timer = broker.timer
        bounds = [bound / 1e3 for bound in LATENESS_BOUNDS_MS]
        rows: list[tuple[list[str], list[int], float]] = [([], timer.lateness_counts, timer.lateness_sum_ms / 1e3)]
        yield _histogram("sluice_purgatory_lateness_seconds", rows, bounds)
        kafka = "kafka_server_delayedoperationpurgatory_"
        yield _family(kafka + "purgatorysize", [([p.name], p.watched) for p in purgatories])
        yield _family(kafka + "numdelayedoperations", [([p.name], p.delayed) for p in purgatories])

    def _quotas(self) -> Iterator[Metric]:
        broker = self._broker
        now_ms = broker.throttler.time.peek(broker.clock.wall_ms())
        most = broker.config.integer("sluice.metrics.client.ids.max")
        # Only the first broker reports the controller's quotas.
        is_first = broker.node_id == min(broker.cluster.brokers)
        mutation = broker.cluster.controller_quotas.mutation if is_first else None
        managers = {manager.kind: manager for manager in (*broker.quotas, *([] if mutation is None else [mutation]))}
        by_attribute: dict[str, list[tuple[list[str], float]]] = {}
        throttle: list[tuple[list[str], float]] = []
        for kind, attributes in _ATTRIBUTES.items():
            manager = managers.get(kind)
            clients = [] if manager is None else _capped(manager, now_ms, most)
            throttle += [([kind, c.user, c.client_id], c.throttle_time_total_ms / 1e3) for c in clients]
            for attribute, value_of in attributes.items():
                rows = [([c.user, c.client_id], value_of(c)) for c in clients]
                yield _family(f"kafka_server_{kind.lower()}_{attribute}", rows)
                by_attribute.setdefault(attribute, []).extend(([kind, *labels], value) for labels, value in rows)
            waiting = 0 if manager is None else manager.queue_size
            yield _one(f"kafka_server_{kind.lower()}_queue_size", waiting)
        for attribute, rows in by_attribute.items():
            yield _family(f"kafka_server_quota_{attribute}", rows)
        request = broker.quotas.request
        exempt = [] if request is None else [(list[str](), request.exempt_request_time(now_ms))]
        yield _family("kafka_server_request_exempt_request_time", exempt)
        yield _family("sluice_throttle_seconds_total", throttle)
        times = broker.throttler.histograms.by_api.items()
        waits = (
            ([api, sanitize(user), client], each.counts, each.total_ms / 1e3) for (api, user, client), each in times
        )
        yield _histogram("sluice_throttle_time_seconds", waits, THROTTLE_SECONDS_BOUNDS)

    def _accepting(self) -> Iterator[Metric]:
        acceptor = self._server.acceptor
        rate: list[tuple[list[str], float]] = []
        rates: list[tuple[list[str], float]] = []
        waits: list[tuple[list[str], float]] = []
        closed: list[tuple[list[str], float]] = []
        if acceptor is not None:
            quotas, now_ms = acceptor.quotas, acceptor.now_ms()
            most = self._broker.config.integer("sluice.metrics.client.ids.max")
            rate = [([], quotas.rate.rate.peek(now_ms))]
            addresses = [*quotas.address_rates.items()][:most]
            rates = [([name, ""], each.rate.rate.peek(now_ms)) for name, each in quotas.listeners.items()]
            rates += [(["", address], each.rate.peek(now_ms)) for address, each in addresses]
            waits = [([name], each.throttle_time.peek(now_ms)) for name, each in quotas.listeners.items()]
            closed = [([name], each.address_throttle_time.peek(now_ms)) for name, each in quotas.listeners.items()]
        yield _family(SOCKET_SERVER + "broker_connection_accept_rate", rate)
        yield _family(SOCKET_SERVER + "connection_accept_rate", rates)
        yield _family(SOCKET_SERVER + "connection_accept_throttle_time", waits)
        yield _family(SOCKET_SERVER + "ip_connection_accept_throttle_time", closed)

    def _topics(self) -> Iterator[Metric]:
        node_id, topics = self._broker.node_id, self._broker.metadata.topics
        found = [(name, topics[name].traffic[node_id]) for name in sorted(topics) if node_id in topics[name].traffic]
        prefix = "kafka_server_brokertopicmetrics_"
        yield _family(prefix + "messagesin_total", [([name], traffic.records_in) for name, traffic in found])
        yield _family(prefix + "bytesin_total", [([name], traffic.bytes_in) for name, traffic in found])
        yield _family(prefix + "bytesout_total", [([name], traffic.bytes_out) for name, traffic in found])

    def _fetch_sessions(self) -> Iterator[Metric]:
        sessions = self._broker.fetch_sessions
        prefix = "kafka_server_fetchsessioncache_"
        yield _one(prefix + "numincrementalfetchsessions", len(sessions))
        yield _one(prefix + "numincrementalfetchpartitionscached", sessions.partitions)
        yield _one(prefix + "incrementalfetchsessionevictions_total", sessions.evictions)

    def _shares(self) -> Iterator[Metric]:
        shares = Broker.share_partitions.if_made(self._broker)
        sessions = None if shares is None else shares.sessions
        prefix = "kafka_server_sharesessioncache_"
        yield _one(prefix + "sharesessionscount", len(sessions) if sessions is not None else 0)
        yield _one(prefix + "sharepartitionscount", sessions.partition_count if sessions is not None else 0)
        yield _family(prefix + "sharesessionevictions_total", [([], sessions.evictions if sessions is not None else 0)])
        acknowledged = (
            [] if shares is None else [([kind], count) for kind, count in sorted(shares.acknowledged.items())]
        )
        yield _family("kafka_server_sharegroupmetrics_recordacknowledgement_total", acknowledged)
        topics = self._broker.metadata.topics_by_id
        in_flight = [
            ([key.group_id, topics[key.topic_id].name, str(key.partition)], share.in_flight)
            for key, share in shares or ()
            if key.topic_id in topics
        ]
        prefix = "kafka_server_sharepartitionmetrics_"
        yield _family(prefix + "inflightmessagecount", in_flight)
        yield _one(prefix + "acquisitionlocktimeout_total", shares.timed_out_records if shares else 0)

    def _faults(self) -> Iterator[Metric]:
        broker, faults = self._broker, ClusterServer.faults.if_made(self._cluster)
        yield _family("sluice_faults_total", [] if faults is None else self._fault_hits(faults))
        is_first = broker.node_id == min(broker.cluster.brokers)
        yield _family(
            "sluice_fault_rules_disabled_total", [([], 0 if faults is None else faults.disabled)] if is_first else []
        )

    def _fault_hits(self, faults: "FaultEngine") -> list[tuple[list[str], int]]:
        node_id, most = self._broker.node_id, self._broker.config.integer("sluice.metrics.client.ids.max")
        # As for clients: a rule named `__other__` is counted with the rest.
        rules = sorted(faults, key=lambda fault: fault.id == OTHER)
        hits = [(fault.id, fault.hits_on.get(node_id, 0)) for fault in rules]
        shown = [*hits[:most], (OTHER, sum(count for _, count in hits[most:]))]
        return [([rule], count) for rule, count in shown if count]

    def _authentications(self) -> Iterator[Metric]:
        for name, count in _AUTHENTICATIONS.items():
            counts = [([one.name], getattr(one.authentications, count)) for one in self._server.channel_builders]
            yield _family(f"{SOCKET_SERVER}{name}", counts)


class ClusterCollector(Collector):
    """The metrics of all brokers, labelled by broker unless there is only one for ever."""

    def __init__(self, cluster: ClusterServer) -> None:
        self._cluster = cluster

    def collect(self) -> Iterator[Metric]:
        cluster = self._cluster
        if len(cluster.servers) == 1 and not cluster.is_proxy:
            (node_id,) = cluster.servers
            yield from _BrokerMetrics(cluster, node_id).collect()
            return
        families: dict[tuple[str, str], Metric] = {}  # a gauge and a counter may differ in `_total` only
        for node_id in cluster.servers:
            for family in _BrokerMetrics(cluster, node_id).collect():
                labelled = [one._replace(labels={"broker": str(node_id), **one.labels}) for one in family.samples]
                family.samples = []
                families.setdefault((family.name, family.type), family).samples += labelled
        yield from families.values()


def registry(cluster: ClusterServer) -> CollectorRegistry:
    metrics = CollectorRegistry()
    metrics.register(ClusterCollector(cluster))
    return metrics


def _forwarded(upstream: UpstreamState) -> Iterator[Metric]:
    prefix = "sluice_upstream_"
    yield _one(prefix + "reachable", upstream.is_reachable)
    yield _one(prefix + "connections", upstream.open_connections)
    yield _one(prefix + "connections_total", upstream.connections)
    yield _one(prefix + "connection_failures_total", upstream.connection_failures)
    yield _one(prefix + "disconnects_total", upstream.disconnects)
    yield _one(prefix + "requests_in_flight", upstream.in_flight)
    durations = (([api], [*counts], sum_s) for api, (counts, sum_s) in sorted(upstream.durations.items()))
    yield _histogram(prefix + "request_duration_seconds", durations, REQUEST_SECONDS_BOUNDS)
    errors = (([api, name_of(code)], count) for (api, code), count in sorted(upstream.errors.items()))
    yield _family(prefix + "errors_total", errors)
    yield _one(prefix + "invalid_responses_total", upstream.invalid_responses)
    yield _one(prefix + "sent_bytes_total", upstream.bytes_sent)
    yield _one(prefix + "received_bytes_total", upstream.bytes_received)


def _one(name: str, value: float) -> Metric:
    return _family(name, [([], value)])


_Rows = Iterable[tuple[list[str], float]]


def _family(name: str, rows: _Rows) -> Metric:
    """Return a gauge or a counter with rows of labels and values."""
    declared = METRICS[name]
    new = GaugeMetricFamily if declared.kind == "gauge" else CounterMetricFamily
    family = new(name, declared.help, labels=declared.labels)
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


def _histogram(name: str, rows: Iterable[tuple[list[str], list[int], float]], bounds: Sequence[float]) -> Metric:
    """Return a histogram of rows: labels, counts (one per bound and one above, not cumulative) and sum."""
    family = HistogramMetricFamily(name, METRICS[name].help, labels=METRICS[name].labels)
    for labels, counts, total in rows:
        edges = [*(str(bound) for bound in bounds), "+Inf"]
        family.add_metric(labels, list(zip(edges, accumulate(counts), strict=True)), total)
    return family


def _durations(routes: Sequence[Route]) -> Iterator[tuple[list[str], list[int], float]]:
    for api_name, group in groupby(routes, key=lambda route: route.api_name):
        versions = list(group)
        counts = [sum(column) for column in zip(*(route.latency_counts for route in versions), strict=True)]
        yield [api_name], counts, sum(route.latency_sum_s for route in versions)


def _capped(manager: ClientQuotaManager, now_ms: int, most: int) -> list[ClientUsage]:
    # A client named `__other__` comes last, so that it is added to the rest: no series may occur twice.
    clients = sorted(manager.snapshot(now_ms), key=lambda client: client.client_id == OTHER)
    shown, rest = clients[:most], clients[most:]
    if rest:
        shown.append(
            ClientUsage(
                user="",
                client_id=OTHER,
                rate=sum(client.rate for client in rest),
                bound=UNLIMITED,
                window_size_ms=0,
                throttle_time_avg_ms=nan,
                throttle_time_total_ms=sum(client.throttle_time_total_ms for client in rest),
            )
        )
    return shown


def _partitions(broker: Broker) -> Iterator[Partition]:
    for topic in broker.metadata.topics.values():
        yield from (partition for partition in topic.partitions if broker.node_id in partition.replicas)
