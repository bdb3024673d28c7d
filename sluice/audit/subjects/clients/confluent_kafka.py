"""confluent-kafka, a binding of librdkafka: settings from CONFIGURATION.md, KIPs from INTRODUCTION.md.

By CHANGELOG.md, KIP-580 came with 2.3.0, KIP-951 with 2.5.0 and KIP-899 with 2.10.0.

Its request.timeout.ms is only the timeout in requests; the client waits for socket.timeout.ms, which is set alike. The
producer is not idempotent by default, and audited both ways.
"""

from sluice.audit.judge.model.observation import Role
from sluice.audit.subjects.client import ALL, CONSUMER, PRODUCER, Client, Known

_IDEMPOTENCE = "enable.idempotence"

CLIENT = Client(
    name="confluent-kafka",
    distribution="confluent-kafka",
    driver="sluice.audit.subjects.drivers.confluent_kafka_driver",
    settings=(
        Known("metadata.max.age.ms", ("metadata.max.age.ms",), 900_000),
        Known("metadata.recovery.strategy", ("metadata.recovery.strategy",), "rebootstrap"),
        Known("reconnect.backoff.max.ms", ("reconnect.backoff.max.ms",), 10_000),
        Known("reconnect.backoff.ms", ("reconnect.backoff.ms",), 100),
        Known("retry.backoff.max.ms", ("retry.backoff.max.ms",), 1000),
        Known("retry.backoff.ms", ("retry.backoff.ms",), 100),
        Known("socket.connection.setup.timeout.ms", ("socket.connection.setup.timeout.ms",), 30_000),
        Known("request.timeout.ms", ("socket.timeout.ms", "request.timeout.ms"), 60_000, PRODUCER),
        Known("request.timeout.ms", ("socket.timeout.ms",), 60_000, ALL - PRODUCER),
        Known("security.protocol", ("security.protocol",), "plaintext"),
        Known("sasl.mechanism", ("sasl.mechanism",), None),
        Known("sasl.username", ("sasl.username",), None),
        Known("sasl.password", ("sasl.password",), None),
        Known("acks", ("acks",), "all", PRODUCER),
        Known("batch.size", ("batch.size",), 1_000_000, PRODUCER),
        Known("delivery.timeout.ms", ("delivery.timeout.ms",), 300_000, PRODUCER),
        Known(_IDEMPOTENCE, (), False, PRODUCER),
        Known("linger.ms", ("linger.ms",), 5, PRODUCER),
        Known("max.in.flight.requests.per.connection", ("max.in.flight.requests.per.connection",), 1_000_000),
        Known("retries", ("retries",), 2_147_483_647, PRODUCER),
        Known("auto.offset.reset", ("auto.offset.reset",), "largest", CONSUMER),
        Known("enable.auto.commit", ("enable.auto.commit",), True, CONSUMER),
        Known("fetch.max.wait.ms", ("fetch.wait.max.ms",), 500, CONSUMER),
        Known("heartbeat.interval.ms", ("heartbeat.interval.ms",), 3000, CONSUMER),
        Known("session.timeout.ms", ("session.timeout.ms",), 45_000, CONSUMER),
    ),
    kips=frozenset({"KIP-13", "KIP-91", "KIP-144", "KIP-580", "KIP-601", "KIP-899", "KIP-951"}),
    before=frozenset({"KIP-219"}),
    # CONFIGURATION.md: reconnect.backoff.ms has a jitter of -25 % to +50 %, also at the maximum;
    # reconnect.backoff.max.ms has a separate default; a Produce request is given up when its messages expire
    # (socket.timeout.ms).
    otherwise=frozenset({"KIP-91/5", "KIP-91/9", "KIP-144/2", "KIP-144/7", "KIP-144/9"}),
    fixed={role: {"log_level": 3} for role in Role},
)
IDEMPOTENT = CLIENT._replace(
    name="confluent-kafka-idempotent",
    settings=tuple(
        row._replace(own=(_IDEMPOTENCE,), default=True) if row.name == _IDEMPOTENCE else row for row in CLIENT.settings
    ),
    roles=PRODUCER,
)
