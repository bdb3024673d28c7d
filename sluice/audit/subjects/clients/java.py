"""Apache Kafka's Java client: 3.9, the version in PySpark's Kafka connector, and 4.4.

The settings are those of ProducerConfig, ConsumerConfig and AdminClientConfig
(https://kafka.apache.org/39/documentation.html, https://kafka.apache.org/44/documentation.html).

By its release notes, KIP-144 came with 0.11, KIP-219 with 2.0, KIP-91 with 2.1, KIP-601 with 2.7, KIP-580 and KIP-951
with 3.7, KIP-899 with 3.8. 4.0 changed the defaults of linger.ms and metadata.recovery.strategy.
"""

from sluice.audit.judge.model.observation import Role
from sluice.audit.probes.probe import Setting
from sluice.audit.subjects.client import CONSUMER, JUDGED, PRODUCER, Client, Known

_SERIALIZATION = "org.apache.kafka.common.serialization"

CLIENT = Client(
    name="java",
    distribution="",
    driver="sluice.audit.subjects.drivers.java_driver",
    settings=(
        Known("metadata.max.age.ms", ("metadata.max.age.ms",), 300_000),
        Known("metadata.recovery.strategy", ("metadata.recovery.strategy",), "none"),
        Known("reconnect.backoff.max.ms", ("reconnect.backoff.max.ms",), 1000),
        Known("reconnect.backoff.ms", ("reconnect.backoff.ms",), 50),
        Known("request.timeout.ms", ("request.timeout.ms",), 30_000),
        Known("retry.backoff.max.ms", ("retry.backoff.max.ms",), 1000),
        Known("retry.backoff.ms", ("retry.backoff.ms",), 100),
        Known("socket.connection.setup.timeout.max.ms", ("socket.connection.setup.timeout.max.ms",), 30_000),
        Known("socket.connection.setup.timeout.ms", ("socket.connection.setup.timeout.ms",), 10_000),
        Known("security.protocol", ("security.protocol",), "PLAINTEXT"),
        Known("sasl.mechanism", ("sasl.mechanism",), None),
        Known("sasl.jaas.config", ("sasl.jaas.config",), None),
        Known("acks", ("acks",), "all", PRODUCER),
        Known("batch.size", ("batch.size",), 16_384, PRODUCER),
        Known("delivery.timeout.ms", ("delivery.timeout.ms",), 120_000, PRODUCER),
        Known("enable.idempotence", ("enable.idempotence",), True, PRODUCER),
        Known("linger.ms", ("linger.ms",), 0, PRODUCER),
        Known("max.block.ms", ("max.block.ms",), 60_000, PRODUCER),
        Known("max.in.flight.requests.per.connection", ("max.in.flight.requests.per.connection",), 5, PRODUCER),
        Known("retries", ("retries",), 2_147_483_647, PRODUCER),
        Known("auto.offset.reset", ("auto.offset.reset",), "latest", CONSUMER),
        Known("enable.auto.commit", ("enable.auto.commit",), True, CONSUMER),
        Known("fetch.max.wait.ms", ("fetch.max.wait.ms",), 500, CONSUMER),
        Known("heartbeat.interval.ms", ("heartbeat.interval.ms",), 3000, CONSUMER),
        Known("session.timeout.ms", ("session.timeout.ms",), 45_000, CONSUMER),
    ),
    kips=frozenset({"KIP-13", "KIP-91", "KIP-144", "KIP-219", "KIP-580", "KIP-601", "KIP-899", "KIP-951"}),
    fixed={
        Role.PRODUCER: {
            "key.serializer": f"{_SERIALIZATION}.StringSerializer",
            "value.serializer": f"{_SERIALIZATION}.StringSerializer",
        },
        Role.CONSUMER: {
            "key.deserializer": f"{_SERIALIZATION}.StringDeserializer",
            "value.deserializer": f"{_SERIALIZATION}.StringDeserializer",
        },
    },
)

_DEFAULTS_4: dict[str, Setting] = {"linger.ms": 5, "metadata.recovery.strategy": "rebootstrap"}
CLIENT_4 = CLIENT._replace(
    name="java-4",
    settings=tuple(row._replace(default=_DEFAULTS_4.get(row.name, row.default)) for row in CLIENT.settings),
)


def kafka_defaults() -> dict[str, Setting]:
    """Return the defaults of Kafka's client 4.4 that the audit judges by, for all roles."""
    return {row.name: row.default for row in CLIENT_4.settings if row.name in JUDGED and row.default is not None}
