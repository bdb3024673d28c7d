"""confluent-kafka, which is librdkafka: its CONFIGURATION.md has the settings, INTRODUCTION.md the KIPs.

KIP-580 came with 2.3.0: https://github.com/confluentinc/librdkafka/releases/tag/v2.3.0. INTRODUCTION.md says that
KIP-91 and KIP-144 are supported, and that KIP-219 is not.

request.timeout.ms is there what the broker is told; how long the client waits for an answer is socket.timeout.ms. Both
are given the same. delivery.timeout.ms is another name of message.timeout.ms.
"""

from sluice.audit.observation import Role
from sluice.audit.subjects.client import ALL, CONSUMER, PRODUCER, Client, Known

CLIENT = Client(
    name="confluent-kafka",
    distribution="confluent-kafka",
    driver="sluice.audit.subjects.drivers.confluent_kafka_driver",
    settings=(
        Known("metadata.max.age.ms", ("metadata.max.age.ms",), 900_000),
        Known("reconnect.backoff.max.ms", ("reconnect.backoff.max.ms",), 10_000),
        Known("reconnect.backoff.ms", ("reconnect.backoff.ms",), 100),
        Known("retry.backoff.max.ms", ("retry.backoff.max.ms",), 1000),
        Known("retry.backoff.ms", ("retry.backoff.ms",), 100),
        Known("socket.connection.setup.timeout.ms", ("socket.connection.setup.timeout.ms",), 30_000),
        Known("request.timeout.ms", ("socket.timeout.ms", "request.timeout.ms"), 60_000, PRODUCER),
        Known("request.timeout.ms", ("socket.timeout.ms",), 60_000, ALL - PRODUCER),
        Known("acks", ("acks",), "all", PRODUCER),
        Known("batch.size", ("batch.size",), 1_000_000, PRODUCER),
        Known("delivery.timeout.ms", ("delivery.timeout.ms",), 300_000, PRODUCER),
        Known("enable.idempotence", ("enable.idempotence",), False, PRODUCER),
        Known("linger.ms", ("linger.ms",), 5, PRODUCER),
        Known("max.in.flight.requests.per.connection", ("max.in.flight.requests.per.connection",), 1_000_000),
        Known("retries", ("retries",), 2_147_483_647, PRODUCER),
        Known("auto.offset.reset", ("auto.offset.reset",), "largest", CONSUMER),
        Known("enable.auto.commit", ("enable.auto.commit",), True, CONSUMER),
        Known("fetch.max.wait.ms", ("fetch.wait.max.ms",), 500, CONSUMER),
        Known("heartbeat.interval.ms", ("heartbeat.interval.ms",), 3000, CONSUMER),
        Known("session.timeout.ms", ("session.timeout.ms",), 45_000, CONSUMER),
    ),
    kips=frozenset({"KIP-91", "KIP-144", "KIP-580", "KIP-601"}),
    before=frozenset({"KIP-219"}),
    fixed={role: {"log_level": 3} for role in Role},
)
