"""Declarations of all exported metrics; `sluice.broker.metrics` collects their values.

Names with the prefix `sluice_` follow Prometheus' rules. Kafka's metrics have the JMX exporter's names, in both
spellings found in dashboards, so that dashboards work unchanged.
"""

from msgspec import Struct

# In seconds: a response from memory takes tens of microseconds, a throttled request up to many seconds.
REQUEST_SECONDS_BOUNDS = (
    0.00005,
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.05,
    0.1,
    0.5,
    1.0,
    5.0,
    10.0,
    30.0,
)

# In seconds: request quotas throttle for at most a second, byte rates without limit.
THROTTLE_SECONDS_BOUNDS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


class Metric(Struct, frozen=True):
    """One metric family; `kind` is its Prometheus type.

    only_of: "broker" for a family that a proxy does not have, "proxy" for one that only a proxy has
    """

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()
    only_of: str = ""


def _gauge(name: str, help_: str, *labels: str, only_of: str = "") -> Metric:
    return Metric(name, "gauge", help_, labels, only_of)


def _counter(name: str, help_: str, *labels: str, only_of: str = "") -> Metric:
    return Metric(name, "counter", help_, labels, only_of)


def _histogram(name: str, help_: str, *labels: str, only_of: str = "") -> Metric:
    return Metric(name, "histogram", help_, labels, only_of)


_BROKER, _PROXY = "broker", "proxy"
_CLIENT = ("user", "client_id")
_LISTENER = ("listener",)
SOCKET_SERVER = "kafka_server_socket_server_metrics_"
_RESOURCE = ("resource", "user", "clientId")

METRICS = {
    metric.name: metric
    for metric in (
        _gauge("sluice_build_info", "Constant 1, with the version as a label.", "version"),
        _gauge("sluice_connections", "Open client connections."),
        _counter("sluice_connections_total", "Accepted client connections."),
        _gauge("sluice_throttled_connections", "Connections that are muted or have a delayed response."),
        _gauge("sluice_quota_shadow", "1 if throttle times are only recorded (sluice.quota.mode=shadow), else 0."),
        _counter(
            "sluice_requests_total", "Requests, by the first error code in the response.", "api", "version", "error"
        ),
        _histogram(
            "sluice_request_duration_seconds",
            "Time from reading a request to sending its response, including waits.",
            "api",
        ),
        _counter(
            "sluice_throttle_seconds_total",
            "Throttle time returned to clients, by the violated quota.",
            "resource",
            *_CLIENT,
        ),
        _histogram("sluice_throttle_time_seconds", "Throttle time of responses, by API.", "api", *_CLIENT),
        _gauge("sluice_purgatory_operations", "Operations waiting in a purgatory.", "kind"),
        _histogram(
            "sluice_purgatory_lateness_seconds", "Delay between the deadline and the completion of expired operations."
        ),
        _gauge("sluice_log_bytes", "Bytes of records in memory.", only_of=_BROKER),
        _gauge("sluice_topics", "Topics.", only_of=_BROKER),
        _gauge("sluice_partitions", "Partitions of all topics.", only_of=_BROKER),
        _counter("sluice_telemetry_pushes_total", "Accepted pushes of client metrics (KIP-714).", only_of=_BROKER),
        _counter("sluice_telemetry_bytes_total", "Uncompressed bytes of accepted client metrics.", only_of=_BROKER),
        _counter("sluice_faults_total", "Requests, connections and brokers hit by a fault rule.", "rule"),
        _counter("sluice_fault_rules_disabled_total", "Fault rules disabled by an error."),
        _gauge(
            "sluice_upstream_reachable",
            "1 if the last connection to the upstream broker was made, else 0.",
            only_of=_PROXY,
        ),
        _gauge("sluice_upstream_connections", "Open connections to the upstream broker.", only_of=_PROXY),
        _counter("sluice_upstream_connections_total", "Connections made to the upstream broker.", only_of=_PROXY),
        _counter(
            "sluice_upstream_connection_failures_total",
            "Connections to the upstream broker that were not made.",
            only_of=_PROXY,
        ),
        _counter("sluice_upstream_disconnects_total", "Connections that the upstream broker ended.", only_of=_PROXY),
        _gauge("sluice_upstream_requests_in_flight", "Forwarded requests without a response yet.", only_of=_PROXY),
        _histogram(
            "sluice_upstream_request_duration_seconds",
            "Time from forwarding a request to its response.",
            "api",
            only_of=_PROXY,
        ),
        _counter(
            "sluice_upstream_errors_total",
            "Responses of the upstream broker with an error, by the first error code.",
            "api",
            "error",
            only_of=_PROXY,
        ),
        _counter(
            "sluice_upstream_invalid_responses_total",
            "Responses of the upstream broker that are malformed.",
            only_of=_PROXY,
        ),
        _counter("sluice_upstream_sent_bytes_total", "Bytes sent to the upstream broker.", only_of=_PROXY),
        _counter("sluice_upstream_received_bytes_total", "Bytes received from the upstream broker.", only_of=_PROXY),
        # Kafka's quota sensors, measured at the scrape as with JMX. Throttle times are averages of throttled requests
        # alone, as in Kafka, over the last 30 to 60 s, and NaN without any.
        _gauge("kafka_server_produce_byte_rate", "Produced bytes per second over the quota windows.", *_CLIENT),
        _gauge(
            "kafka_server_produce_throttle_time", "Average throttle time of throttled produce requests, ms.", *_CLIENT
        ),
        _gauge("kafka_server_fetch_byte_rate", "Fetched bytes per second over the quota windows.", *_CLIENT),
        _gauge("kafka_server_fetch_throttle_time", "Average throttle time of throttled fetch requests, ms.", *_CLIENT),
        _gauge("kafka_server_request_request_time", "Request time in percent of a thread, over the windows.", *_CLIENT),
        _gauge(
            "kafka_server_request_throttle_time",
            "Average throttle time of requests throttled by a request quota, ms.",
            *_CLIENT,
        ),
        _gauge(
            "kafka_server_request_exempt_request_time", "Time of exempt requests in percent of a thread, over 30 s."
        ),
        _gauge(
            "kafka_server_controllermutation_mutation_rate",
            "Partitions created and deleted per second, over 30 to 60 s.",
            *_CLIENT,
        ),
        _gauge("kafka_server_controllermutation_tokens", "Available partition mutations.", *_CLIENT),
        _gauge(
            "kafka_server_controllermutation_throttle_time",
            "Average throttle time of throttled partition mutations, ms.",
            *_CLIENT,
        ),
        _gauge("kafka_server_produce_queue_size", "Connections throttled by a produce quota."),
        _gauge("kafka_server_fetch_queue_size", "Connections throttled by a fetch quota."),
        _gauge("kafka_server_request_queue_size", "Connections throttled by a request quota."),
        _gauge("kafka_server_controllermutation_queue_size", "Connections throttled by a mutation quota."),
        _gauge("kafka_server_quota_byte_rate", "Bytes per second, by resource.", *_RESOURCE),
        _gauge("kafka_server_quota_request_time", "Request time in percent of a thread, by resource.", *_RESOURCE),
        _gauge("kafka_server_quota_mutation_rate", "Partition mutations per second, by resource.", *_RESOURCE),
        _gauge("kafka_server_quota_tokens", "Available partition mutations, by resource.", *_RESOURCE),
        _gauge(
            "kafka_server_quota_throttle_time",
            "Average throttle time of throttled requests, ms, by resource.",
            *_RESOURCE,
        ),
        # New connections, in total, per listener and per address.
        _gauge(
            f"{SOCKET_SERVER}broker_connection_accept_rate",
            "Accepted connections per second over the quota windows; only with a connection limit.",
        ),
        _gauge(
            f"{SOCKET_SERVER}connection_accept_rate",
            "Accepted connections per second of a listener, or of an address with a limit.",
            "listener",
            "ip",
        ),
        _gauge(
            f"{SOCKET_SERVER}connection_accept_throttle_time",
            "Average delay of connections by a rate limit, ms.",
            *_LISTENER,
        ),
        _gauge(
            f"{SOCKET_SERVER}ip_connection_accept_throttle_time",
            "Average delay before connections of throttled addresses were closed, ms.",
            *_LISTENER,
        ),
        _gauge(
            "kafka_server_delayedoperationpurgatory_purgatorysize",
            "Watched entries, including completed ones not purged yet.",
            "delayedOperation",
        ),
        _gauge(
            "kafka_server_delayedoperationpurgatory_numdelayedoperations", "Delayed operations.", "delayedOperation"
        ),
        _counter("kafka_server_brokertopicmetrics_messagesin_total", "Records appended.", "topic", only_of=_BROKER),
        _counter("kafka_server_brokertopicmetrics_bytesin_total", "Record bytes appended.", "topic", only_of=_BROKER),
        _counter("kafka_server_brokertopicmetrics_bytesout_total", "Record bytes fetched.", "topic", only_of=_BROKER),
        _gauge("kafka_server_fetchsessioncache_numincrementalfetchsessions", "Fetch sessions.", only_of=_BROKER),
        _gauge(
            "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
            "Partitions of all fetch sessions.",
            only_of=_BROKER,
        ),
        _counter(
            "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
            "Fetch sessions evicted by others.",
            only_of=_BROKER,
        ),
        _gauge("kafka_server_sharesessioncache_sharesessionscount", "Share sessions.", only_of=_BROKER),
        _gauge(
            "kafka_server_sharesessioncache_sharepartitionscount", "Partitions of all share sessions.", only_of=_BROKER
        ),
        _counter(
            "kafka_server_sharesessioncache_sharesessionevictions_total",
            "Share sessions ended by a disconnection.",
            only_of=_BROKER,
        ),
        _counter(
            "kafka_server_sharegroupmetrics_recordacknowledgement_total",
            "Acknowledged records.",
            "ackType",
            only_of=_BROKER,
        ),
        _gauge(
            "kafka_server_sharepartitionmetrics_inflightmessagecount",
            "Records in flight.",
            "group",
            "topic",
            "partition",
            only_of=_BROKER,
        ),
        _counter(
            "kafka_server_sharepartitionmetrics_acquisitionlocktimeout_total",
            "Records whose acquisition lock timed out.",
            only_of=_BROKER,
        ),
        # Kafka's socket-server-metrics, only of listeners with TLS or SASL.
        _counter(
            f"{SOCKET_SERVER}successful_authentication_total", "Connections authenticated by SASL or TLS.", *_LISTENER
        ),
        _counter(
            f"{SOCKET_SERVER}successful_authentication_no_reauth_total",
            "Authenticated connections of clients without support for re-authentication (KIP-368).",
            *_LISTENER,
        ),
        _counter(f"{SOCKET_SERVER}failed_authentication_total", "Failed authentications.", *_LISTENER),
        _counter(f"{SOCKET_SERVER}successful_reauthentication_total", "Successful re-authentications.", *_LISTENER),
        _counter(f"{SOCKET_SERVER}failed_reauthentication_total", "Failed re-authentications.", *_LISTENER),
        _gauge(
            f"{SOCKET_SERVER}expired_connections_killed_count",
            "Connections closed because of use after their session expired.",
            *_LISTENER,
        ),
    )
}
