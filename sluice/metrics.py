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
    """One metric family; `kind` is its Prometheus type."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


_CLIENT = ("user", "client_id")
_LISTENER = ("listener",)
SOCKET_SERVER = "kafka_server_socket_server_metrics_"
_RESOURCE = ("resource", "user", "clientId")

METRICS = {
    metric.name: metric
    for metric in (
        Metric("sluice_build_info", "gauge", "Constant 1, with the version as a label.", ("version",)),
        Metric("sluice_connections", "gauge", "Open client connections."),
        Metric("sluice_connections_total", "counter", "Accepted client connections."),
        Metric("sluice_throttled_connections", "gauge", "Connections that are muted or have a delayed response."),
        Metric(
            "sluice_requests_total",
            "counter",
            "Requests, by the first error code in the response.",
            ("api", "version", "error"),
        ),
        Metric(
            "sluice_request_duration_seconds",
            "histogram",
            "Time from reading a request to sending its response, including waits.",
            ("api",),
        ),
        Metric(
            "sluice_throttle_seconds_total",
            "counter",
            "Throttle time returned to clients, by the violated quota.",
            ("resource", *_CLIENT),
        ),
        Metric(
            "sluice_throttle_time_seconds",
            "histogram",
            "Throttle time of responses, by API.",
            ("api", *_CLIENT),
        ),
        Metric("sluice_purgatory_operations", "gauge", "Operations waiting in a purgatory.", ("kind",)),
        Metric(
            "sluice_purgatory_lateness_seconds",
            "histogram",
            "Delay between the deadline and the completion of expired operations.",
        ),
        Metric("sluice_log_bytes", "gauge", "Bytes of records in memory."),
        Metric("sluice_topics", "gauge", "Topics."),
        Metric("sluice_partitions", "gauge", "Partitions of all topics."),
        Metric("sluice_telemetry_pushes_total", "counter", "Accepted pushes of client metrics (KIP-714)."),
        Metric("sluice_telemetry_bytes_total", "counter", "Uncompressed bytes of accepted client metrics."),
        Metric("sluice_faults_total", "counter", "Requests, connections and brokers hit by a fault rule.", ("rule",)),
        Metric("sluice_fault_rules_disabled_total", "counter", "Fault rules disabled by an error."),
        # Kafka's quota sensors, measured at the scrape as with JMX. Throttle times are averages of throttled requests
        # alone, as in Kafka, over the last 30 to 60 s, and NaN without any.
        Metric("kafka_server_produce_byte_rate", "gauge", "Produced bytes per second over the quota windows.", _CLIENT),
        Metric(
            "kafka_server_produce_throttle_time",
            "gauge",
            "Average throttle time of throttled produce requests, ms.",
            _CLIENT,
        ),
        Metric("kafka_server_fetch_byte_rate", "gauge", "Fetched bytes per second over the quota windows.", _CLIENT),
        Metric(
            "kafka_server_fetch_throttle_time",
            "gauge",
            "Average throttle time of throttled fetch requests, ms.",
            _CLIENT,
        ),
        Metric(
            "kafka_server_request_request_time",
            "gauge",
            "Request time in percent of a thread, over the windows.",
            _CLIENT,
        ),
        Metric(
            "kafka_server_request_throttle_time",
            "gauge",
            "Average throttle time of requests throttled by a request quota, ms.",
            _CLIENT,
        ),
        Metric(
            "kafka_server_request_exempt_request_time",
            "gauge",
            "Time of exempt requests in percent of a thread, over 30 s.",
        ),
        Metric(
            "kafka_server_controllermutation_mutation_rate",
            "gauge",
            "Partitions created and deleted per second, over 30 to 60 s.",
            _CLIENT,
        ),
        Metric("kafka_server_controllermutation_tokens", "gauge", "Available partition mutations.", _CLIENT),
        Metric(
            "kafka_server_controllermutation_throttle_time",
            "gauge",
            "Average throttle time of throttled partition mutations, ms.",
            _CLIENT,
        ),
        Metric("kafka_server_produce_queue_size", "gauge", "Connections throttled by a produce quota."),
        Metric("kafka_server_fetch_queue_size", "gauge", "Connections throttled by a fetch quota."),
        Metric("kafka_server_request_queue_size", "gauge", "Connections throttled by a request quota."),
        Metric("kafka_server_controllermutation_queue_size", "gauge", "Connections throttled by a mutation quota."),
        Metric("kafka_server_quota_byte_rate", "gauge", "Bytes per second, by resource.", _RESOURCE),
        Metric(
            "kafka_server_quota_request_time", "gauge", "Request time in percent of a thread, by resource.", _RESOURCE
        ),
        Metric("kafka_server_quota_mutation_rate", "gauge", "Partition mutations per second, by resource.", _RESOURCE),
        Metric("kafka_server_quota_tokens", "gauge", "Available partition mutations, by resource.", _RESOURCE),
        Metric(
            "kafka_server_quota_throttle_time",
            "gauge",
            "Average throttle time of throttled requests, ms, by resource.",
            _RESOURCE,
        ),
        # New connections, in total, per listener and per address.
        Metric(
            f"{SOCKET_SERVER}broker_connection_accept_rate",
            "gauge",
            "Accepted connections per second over the quota windows; only with a connection limit.",
        ),
        Metric(
            f"{SOCKET_SERVER}connection_accept_rate",
            "gauge",
            "Accepted connections per second of a listener, or of an address with a limit.",
            ("listener", "ip"),
        ),
        Metric(
            f"{SOCKET_SERVER}connection_accept_throttle_time",
            "gauge",
            "Average delay of connections by a rate limit, ms.",
            _LISTENER,
        ),
        Metric(
            f"{SOCKET_SERVER}ip_connection_accept_throttle_time",
            "gauge",
            "Average delay before connections of throttled addresses were closed, ms.",
            _LISTENER,
        ),
        Metric(
            "kafka_server_delayedoperationpurgatory_purgatorysize",
            "gauge",
            "Watched entries, including completed ones not purged yet.",
            ("delayedOperation",),
        ),
        Metric(
            "kafka_server_delayedoperationpurgatory_numdelayedoperations",
            "gauge",
            "Delayed operations.",
            ("delayedOperation",),
        ),
        Metric("kafka_server_brokertopicmetrics_messagesin_total", "counter", "Records appended.", ("topic",)),
        Metric("kafka_server_brokertopicmetrics_bytesin_total", "counter", "Record bytes appended.", ("topic",)),
        Metric("kafka_server_brokertopicmetrics_bytesout_total", "counter", "Record bytes fetched.", ("topic",)),
        Metric("kafka_server_fetchsessioncache_numincrementalfetchsessions", "gauge", "Fetch sessions."),
        Metric(
            "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
            "gauge",
            "Partitions of all fetch sessions.",
        ),
        Metric(
            "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
            "counter",
            "Fetch sessions evicted by others.",
        ),
        Metric("kafka_server_sharesessioncache_sharesessionscount", "gauge", "Share sessions."),
        Metric("kafka_server_sharesessioncache_sharepartitionscount", "gauge", "Partitions of all share sessions."),
        Metric(
            "kafka_server_sharesessioncache_sharesessionevictions_total",
            "counter",
            "Share sessions ended by a disconnection.",
        ),
        Metric(
            "kafka_server_sharegroupmetrics_recordacknowledgement_total",
            "counter",
            "Acknowledged records.",
            ("ackType",),
        ),
        Metric(
            "kafka_server_sharepartitionmetrics_inflightmessagecount",
            "gauge",
            "Records in flight.",
            ("group", "topic", "partition"),
        ),
        Metric(
            "kafka_server_sharepartitionmetrics_acquisitionlocktimeout_total",
            "counter",
            "Records whose acquisition lock timed out.",
        ),
        # Kafka's socket-server-metrics, only of listeners with TLS or SASL.
        Metric(
            f"{SOCKET_SERVER}successful_authentication_total",
            "counter",
            "Connections authenticated by SASL or TLS.",
            _LISTENER,
        ),
        Metric(
            f"{SOCKET_SERVER}successful_authentication_no_reauth_total",
            "counter",
            "Authenticated connections of clients without support for re-authentication (KIP-368).",
            _LISTENER,
        ),
        Metric(f"{SOCKET_SERVER}failed_authentication_total", "counter", "Failed authentications.", _LISTENER),
        Metric(
            f"{SOCKET_SERVER}successful_reauthentication_total",
            "counter",
            "Successful re-authentications.",
            _LISTENER,
        ),
        Metric(f"{SOCKET_SERVER}failed_reauthentication_total", "counter", "Failed re-authentications.", _LISTENER),
        Metric(
            f"{SOCKET_SERVER}expired_connections_killed_count",
            "gauge",
            "Connections closed because of use after their session expired.",
            _LISTENER,
        ),
    )
}
