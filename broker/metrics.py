"""What a scrape reads: plain integers that the request path counted, turned into Prometheus' families.

Declared in `sluice.metrics`. Client ids are chosen by clients, so there is a cap on how many have series of their own
(`sluice.metrics.client.ids.max`): the first to come, until their sensors expire; the others are added up as
`__other__`. Which ones have a series must not change with their rates, or counters would jump.

Of several brokers each has its own series, told apart by the label `broker`. Logs and partitions count for those that
have replicas, and what passed through a partition for its leader.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from math import nan
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

import sluice
from sluice.metrics import METRICS, REQUEST_SECONDS_BOUNDS, SOCKET_SERVER
from sluice.protocol.errors import ErrorCode
from sluice.purgatory.timer import LATENESS_BOUNDS_MS
from sluice.quotas.manager import ClientQuotaManager, ClientUsage
from sluice.quotas.sensor import UNLIMITED

from .broker import Broker
from .cluster import Partition
from .dispatch import Route
from .server import Server

if TYPE_CHECKING:
    from .security.secure_listener import Authentications

OTHER = "__other__"


class BrokerCollector(Collector):
    """Collects from one broker and its server whenever it is asked."""

    def __init__(self, broker: Broker, server: Server) -> None:
        self._broker = broker
        self._server = server

    def collect(self) -> Iterator[Metric]:
        """All families; those without a value yet are there with none."""
        yield from self._state()
        yield from self._requests()
        yield from self._purgatories()
        yield from self._quotas()
        yield from self._topics()
        yield from self._fetch_sessions()
        yield from self._authentications()

    def _state(self) -> Iterator[Metric]:
        broker, server = self._broker, self._server
        yield _gauge("sluice_build_info", [([sluice.__version__], 1)])
        yield _gauge("sluice_connections", [([], len(server.connections))])
        yield _counter("sluice_connections_total", [([], server.accepted)])
        yield _gauge("sluice_throttled_connections", [([], len(broker.throttled))])
        yield _gauge("sluice_log_bytes", [([], sum(t.log.size_in_bytes for t in _partitions(broker)))])
        yield _gauge("sluice_topics", [([], len(broker.cluster.topics))])
        yield _gauge("sluice_partitions", [([], sum(1 for _ in _partitions(broker)))])
        telemetry = broker.telemetry_in_use
        yield _counter("sluice_telemetry_pushes_total", [([], telemetry.pushes if telemetry else 0)])
        yield _counter("sluice_telemetry_bytes_total", [([], telemetry.pushed_bytes if telemetry else 0)])

    def _requests(self) -> Iterator[Metric]:
        routes = sorted(self._broker.dispatcher.routes, key=lambda route: (route.api_name, route.version))
        rows: list[tuple[list[str], float]] = []
        for route in routes:
            good = route.requests - sum(route.errors.values())
            by_error = [("NONE", good)] if good else []
            by_error += [(ErrorCode(code).name, count) for code, count in sorted(route.errors.items())]
            rows += [([route.api_name, str(route.version), error], count) for error, count in by_error]
        yield _counter("sluice_requests_total", rows)
        yield _histogram("sluice_request_duration_seconds", _durations(routes), REQUEST_SECONDS_BOUNDS)

    def _purgatories(self) -> Iterator[Metric]:
        broker = self._broker
        purgatories = [broker.fetches, broker.produces, broker.delete_records, broker.throttled]
        if broker.groups_in_use is not None:
            purgatories += [broker.groups_in_use.rebalances, broker.groups_in_use.heartbeats]
        yield _gauge("sluice_purgatory_operations", [([p.name], p.delayed) for p in purgatories])
        timer = broker.timer
        bounds = [bound / 1e3 for bound in LATENESS_BOUNDS_MS]
        rows: list[tuple[list[str], list[int], float]] = [([], timer.lateness_counts, timer.lateness_sum_ms / 1e3)]
        yield _histogram("sluice_purgatory_lateness_seconds", rows, bounds)
        kafka = "kafka_server_delayedoperationpurgatory_"
        yield _gauge(kafka + "purgatorysize", [([p.name], p.watched) for p in purgatories])
        yield _gauge(kafka + "numdelayedoperations", [([p.name], p.delayed) for p in purgatories])

    def _quotas(self) -> Iterator[Metric]:
        now_ms = self._broker.clock.wall_ms()
        most = self._broker.config.integer("sluice.metrics.client.ids.max")
        throttle, rates, averages = [], [], []
        for manager in (self._broker.quotas.produce, self._broker.quotas.fetch):
            clients = _capped(manager, now_ms, most)
            resource = manager.kind
            throttle += [([resource, c.user, c.client_id], c.throttle_time_total_ms / 1e3) for c in clients]
            rate = [([c.user, c.client_id], c.rate) for c in clients]
            average = [([c.user, c.client_id], c.throttle_time_avg_ms) for c in clients]
            yield _gauge(f"kafka_server_{resource.lower()}_byte_rate", rate)
            yield _gauge(f"kafka_server_{resource.lower()}_throttle_time", average)
            rates += [([resource, *labels], value) for labels, value in rate]
            averages += [([resource, *labels], value) for labels, value in average]
        yield _gauge("kafka_server_quota_byte_rate", rates)
        yield _gauge("kafka_server_quota_throttle_time", averages)
        yield _counter("sluice_throttle_seconds_total", throttle)

    def _topics(self) -> Iterator[Metric]:
        node_id, topics = self._broker.node_id, self._broker.cluster.topics
        found = [(name, topics[name].traffic[node_id]) for name in sorted(topics) if node_id in topics[name].traffic]
        prefix = "kafka_server_brokertopicmetrics_"
        yield _counter(prefix + "messagesin_total", [([name], traffic.records_in) for name, traffic in found])
        yield _counter(prefix + "bytesin_total", [([name], traffic.bytes_in) for name, traffic in found])
        yield _counter(prefix + "bytesout_total", [([name], traffic.bytes_out) for name, traffic in found])

    def _fetch_sessions(self) -> Iterator[Metric]:
        sessions = self._broker.fetch_sessions_in_use
        prefix = "kafka_server_fetchsessioncache_"
        yield _gauge(prefix + "numincrementalfetchsessions", [([], len(sessions) if sessions is not None else 0)])
        yield _gauge(
            prefix + "numincrementalfetchpartitionscached", [([], sessions.partitions if sessions is not None else 0)]
        )
        yield _counter(
            prefix + "incrementalfetchsessionevictions_total", [([], sessions.evictions if sessions is not None else 0)]
        )

    def _authentications(self) -> Iterator[Metric]:
        listeners = [(secure.name, secure.authentications) for secure in self._server.secure_listeners]

        def counter(name: str, count: "Callable[[Authentications], int]") -> Metric:
            return _counter(f"{SOCKET_SERVER}{name}", [([name_], count(own)) for name_, own in listeners])

        yield counter("successful_authentication_total", lambda own: own.successful)
        yield counter("successful_authentication_no_reauth_total", lambda own: own.successful_no_reauth)
        yield counter("failed_authentication_total", lambda own: own.failed)
        yield counter("successful_reauthentication_total", lambda own: own.successful_again)
        yield counter("failed_reauthentication_total", lambda own: own.failed_again)
        killed = [([name], own.expired_connections_killed) for name, own in listeners]
        yield _gauge(f"{SOCKET_SERVER}expired_connections_killed_count", killed)


class ClusterCollector(Collector):
    """Collects from several brokers: their series in one family, with a label more."""

    def __init__(self, servers: Mapping[int, Server]) -> None:
        self._servers = servers

    def collect(self) -> Iterator[Metric]:
        """All families."""
        families: dict[str, Metric] = {}
        for node_id, server in self._servers.items():
            for family in BrokerCollector(server.broker, server).collect():
                labelled = [one._replace(labels={"broker": str(node_id), **one.labels}) for one in family.samples]
                if family.name in families:
                    families[family.name].samples += labelled
                else:
                    family.samples = labelled
                    families[family.name] = family
        yield from families.values()


def registry(servers: Mapping[int, Server]) -> CollectorRegistry:
    """A registry of these brokers, by node id; one that is alone has no label for it."""
    metrics = CollectorRegistry()
    if len(servers) == 1:
        (server,) = servers.values()
        metrics.register(BrokerCollector(server.broker, server))
    else:
        metrics.register(ClusterCollector(servers))
    return metrics


_Rows = Iterable[tuple[list[str], float]]


def _gauge(name: str, rows: _Rows) -> Metric:
    family = GaugeMetricFamily(name, METRICS[name].help, labels=METRICS[name].labels)
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


def _counter(name: str, rows: _Rows) -> Metric:
    family = CounterMetricFamily(name, METRICS[name].help, labels=METRICS[name].labels)
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


def _histogram(name: str, rows: Iterable[tuple[list[str], list[int], float]], bounds: Sequence[float]) -> Metric:
    """Rows of labels, counts (one per bound and one beyond the last, not cumulative) and sum."""
    family = HistogramMetricFamily(name, METRICS[name].help, labels=METRICS[name].labels)
    for labels, counts, total in rows:
        edges = [*(str(bound) for bound in bounds), "+Inf"]
        family.add_metric(labels, list(zip(edges, accumulate(counts), strict=True)), total)
    return family


def _durations(routes: Sequence[Route]) -> Iterator[tuple[list[str], list[int], float]]:
    # One series an API: versions and errors are told apart by the counter.
    for api_name, group in groupby(routes, key=lambda route: route.api_name):
        versions = list(group)
        counts = [sum(column) for column in zip(*(route.latency_counts for route in versions), strict=True)]
        yield [api_name], counts, sum(route.latency_sum_s for route in versions)


def _capped(manager: ClientQuotaManager, now_ms: int, most: int) -> list[ClientUsage]:
    # A client may call itself `__other__`: it is the first to be one of them, for no series may come twice.
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
    for topic in broker.cluster.topics.values():
        yield from (partition for partition in topic.partitions if broker.node_id in partition.replicas)
