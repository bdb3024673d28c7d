"""Every metric that is exported, declared once; what a scrape reads is collected by `sluice.broker.metrics`.

Two families. Ours follow Prometheus' naming rules. Kafka's carry the names that the JMX exporter gives Kafka's own
beans, in the two spellings found in dashboards, so that those work here as they are.
"""

from typing import NamedTuple

# Upper bounds of request durations, in seconds: an answer from memory takes tens of microseconds, a long poll half a
# second by default, a throttle up to many seconds.
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

# Upper bounds of throttle times, in seconds: request quotas throttle for a second at most, byte rates without bound.
THROTTLE_SECONDS_BOUNDS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


class Metric(NamedTuple):
    """One metric family; `kind` is Prometheus' type."""

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
        Metric("sluice_build_info", "gauge", "1, with the version as a label.", ("version",)),
        Metric("sluice_connections", "gauge", "Client connections that are open."),
        Metric("sluice_connections_total", "counter", "Client connections accepted since the start."),
        Metric("sluice_throttled_connections", "gauge", "Connections that are muted or whose answer is held back now."),
        Metric(
            "sluice_requests_total",
            "counter",
            "Requests answered, by the first error code in the answer.",
            ("api", "version", "error"),
        ),
        Metric(
            "sluice_request_duration_seconds",
            "histogram",
            "From reading a request to sending its answer, waiting included.",
            ("api",),
        ),
        Metric(
            "sluice_throttle_seconds_total",
            "counter",
            "Throttle time that clients were told to serve, by the quota that demanded it.",
            ("resource", *_CLIENT),
        ),
        Metric(
            "sluice_throttle_time_seconds",
            "histogram",
            "Throttle times that clients were made to serve, by API.",
            ("api", *_CLIENT),
        ),
        Metric("sluice_purgatory_operations", "gauge", "Operations that wait in a purgatory.", ("kind",)),
        Metric(
            "sluice_purgatory_lateness_seconds",
            "histogram",
            "How long after its deadline an operation that ran out of time was completed.",
        ),
        Metric("sluice_log_bytes", "gauge", "Record bytes held in memory."),
        Metric("sluice_topics", "gauge", "Topics."),
        Metric("sluice_partitions", "gauge", "Partitions of all topics."),
        Metric("sluice_telemetry_pushes_total", "counter", "Pushes of clients' metrics that were accepted (KIP-714)."),
        Metric("sluice_telemetry_bytes_total", "counter", "Bytes of clients' metrics that were accepted, unpacked."),
        Metric("sluice_faults_total", "counter", "Requests, connections and brokers that a fault rule hit.", ("rule",)),
        Metric("sluice_fault_rules_disabled_total", "counter", "Fault rules that went wrong and were disabled."),
        # Kafka's quota sensors: measured when scraped, as by JMX.
        Metric("kafka_server_produce_byte_rate", "gauge", "Produced bytes per second in the quota's windows.", _CLIENT),
        Metric(
            "kafka_server_produce_throttle_time", "gauge", "Average throttle time of produce requests, ms.", _CLIENT
        ),
        Metric("kafka_server_fetch_byte_rate", "gauge", "Fetched bytes per second in the quota's windows.", _CLIENT),
        Metric("kafka_server_fetch_throttle_time", "gauge", "Average throttle time of fetch requests, ms.", _CLIENT),
        Metric(
            "kafka_server_request_request_time", "gauge", "Percent of a thread that requests took, in windows.", _CLIENT
        ),
        Metric("kafka_server_request_throttle_time", "gauge", "Average throttle time for request time, ms.", _CLIENT),
        Metric(
            "kafka_server_request_exempt_request_time", "gauge", "Percent of a thread that exempt requests took, 30 s."
        ),
        Metric(
            "kafka_server_controllermutation_mutation_rate",
            "gauge",
            "Partitions created and deleted per second, over 30 to 60 s.",
            _CLIENT,
        ),
        Metric("kafka_server_controllermutation_tokens", "gauge", "Partitions that may be mutated now.", _CLIENT),
        Metric(
            "kafka_server_controllermutation_throttle_time",
            "gauge",
            "Average throttle time for mutations, ms.",
            _CLIENT,
        ),
        Metric("kafka_server_produce_queue_size", "gauge", "Connections that wait for a produce quota now."),
        Metric("kafka_server_fetch_queue_size", "gauge", "Connections that wait for a fetch quota now."),
        Metric("kafka_server_request_queue_size", "gauge", "Connections that wait for a request quota now."),
        Metric(
            "kafka_server_controllermutation_queue_size", "gauge", "Connections that wait for a mutation quota now."
        ),
        Metric("kafka_server_quota_byte_rate", "gauge", "As above, by resource.", _RESOURCE),
        Metric("kafka_server_quota_request_time", "gauge", "As above, by resource.", _RESOURCE),
        Metric("kafka_server_quota_mutation_rate", "gauge", "As above, by resource.", _RESOURCE),
        Metric("kafka_server_quota_tokens", "gauge", "As above, by resource.", _RESOURCE),
        Metric("kafka_server_quota_throttle_time", "gauge", "As above, by resource.", _RESOURCE),
        # New connections; those of one listener or of one address.
        Metric(
            f"{SOCKET_SERVER}broker_connection_accept_rate",
            "gauge",
            "Connections taken in per second, in the quota's windows, while connections are limited.",
        ),
        Metric(
            f"{SOCKET_SERVER}connection_accept_rate",
            "gauge",
            "The same of one listener, or of one address that has a limit.",
            ("listener", "ip"),
        ),
        Metric(
            f"{SOCKET_SERVER}connection_accept_throttle_time",
            "gauge",
            "Average time that connections waited because of a rate, ms.",
            _LISTENER,
        ),
        Metric(
            f"{SOCKET_SERVER}ip_connection_accept_throttle_time",
            "gauge",
            "Average time after which connections of throttled addresses were closed, ms.",
            _LISTENER,
        ),
        Metric(
            "kafka_server_delayedoperationpurgatory_purgatorysize",
            "gauge",
            "Watched entries, completed ones that were not purged yet included.",
            ("delayedOperation",),
        ),
        Metric(
            "kafka_server_delayedoperationpurgatory_numdelayedoperations",
            "gauge",
            "Operations that wait for their time.",
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
            "Fetch sessions that lost their place to others.",
        ),
        # Kafka's socket-server-metrics, of listeners that are more than plain text.
        Metric(
            f"{SOCKET_SERVER}successful_authentication_total",
            "counter",
            "Connections whose client was found out to be who it says, or that came by TLS.",
            _LISTENER,
        ),
        Metric(
            f"{SOCKET_SERVER}successful_authentication_no_reauth_total",
            "counter",
            "Of these, those of clients that cannot authenticate anew (KIP-368).",
            _LISTENER,
        ),
        Metric(f"{SOCKET_SERVER}failed_authentication_total", "counter", "Clients that did not get in.", _LISTENER),
        Metric(
            f"{SOCKET_SERVER}successful_reauthentication_total",
            "counter",
            "Clients that authenticated anew.",
            _LISTENER,
        ),
        Metric(
            f"{SOCKET_SERVER}failed_reauthentication_total", "counter", "Clients that tried, and failed.", _LISTENER
        ),
        Metric(
            f"{SOCKET_SERVER}expired_connections_killed_count",
            "gauge",
            "Connections that were used after their session was over.",
            _LISTENER,
        ),
    )
}
