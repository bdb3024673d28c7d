"""The properties of a Streams runtime, as a table (a subset of Kafka's StreamsConfig)."""

from sluice.client.config_table import ADMIN, CONSUMER, PRODUCER, Property, Table
from sluice.config.value_types import INT_MAX, LONG_MAX, choice, integer, text

_MS = integer(0, LONG_MAX)
_BOOTSTRAP_SERVERS = PRODUCER.properties["bootstrap.servers"]

# fmt: off
_PROPERTIES = (
    Property("application.id", text(), None),
    _BOOTSTRAP_SERVERS,
    Property("buffered.records.per.partition", integer(1, INT_MAX), "1000"),
    Property("client.id", text(), ""),
    Property("commit.interval.ms", _MS, "30000"),
    Property("group.protocol", choice("classic"), "classic"),
    Property("max.task.idle.ms", integer(-1, LONG_MAX), "0"),
    Property("num.standby.replicas", choice("0"), "0"),
    Property("num.stream.threads", choice("1"), "1"),
    Property("poll.ms", _MS, "100"),
    Property("processing.guarantee", choice("at_least_once"), "at_least_once"),
    Property("repartition.purge.interval.ms", _MS, "30000"),
    Property("replication.factor", integer(1, 2**15 - 1, also=-1), "-1"),
    Property("retry.backoff.ms", _MS, "100"),
    Property("task.timeout.ms", _MS, "300000"),
)
# fmt: on

_WITHOUT_EFFECT = frozenset(
    (
        "acceptable.recovery.lag", "allow.os.group.write.access", "application.server", "built.in.metrics.version",
        "cache.max.bytes.buffering", "default.client.supplier", "default.deserialization.exception.handler",
        "default.dsl.store", "default.key.serde", "default.list.key.serde.inner", "default.list.key.serde.type",
        "default.list.value.serde.inner", "default.list.value.serde.type", "default.production.exception.handler",
        "default.timestamp.extractor", "default.value.serde", "deserialization.exception.handler", "dsl.store.format",
        "dsl.store.suppliers.class", "ensure.explicit.internal.resource.naming",
        "errors.dead.letter.queue.topic.name", "log.summary.interval.ms", "max.warmup.replicas",
        "probing.rebalance.interval.ms", "processing.exception.handler",
        "processing.exception.handler.global.enabled", "processor.wrapper.class", "production.exception.handler",
        "rack.aware.assignment.non_overlap_cost", "rack.aware.assignment.strategy", "rack.aware.assignment.tags",
        "rack.aware.assignment.traffic_cost", "rocksdb.config.setter", "state.cleanup.delay.ms",
        "state.cleanup.dir.max.age.ms", "state.dir", "statestore.cache.max.bytes", "task.assignor.class",
        "topology.optimization", "upgrade.from", "window.size.ms", "windowed.inner.class.serde",
        "windowstore.changelog.additional.retention.ms",
    )
)  # fmt: skip

STREAMS = Table("streams", {row.name: row for row in _PROPERTIES}, _WITHOUT_EFFECT)

# The property prefixes of each consumer. Later prefixes override earlier ones.
CONSUMER_PREFIXES = {
    "main": ("consumer.", "main.consumer."),
    "restore": ("consumer.", "restore.consumer."),
    "global": ("consumer.", "global.consumer."),
}
PRODUCER_PREFIX, ADMIN_PREFIX, TOPIC_PREFIX = "producer.", "admin.", "topic."
CLIENT_TABLES = {
    "consumer.": CONSUMER,
    "main.consumer.": CONSUMER,
    "restore.consumer.": CONSUMER,
    "global.consumer.": CONSUMER,
    PRODUCER_PREFIX: PRODUCER,
    ADMIN_PREFIX: ADMIN,
}

# The client defaults that Streams changes, and the consumer properties that it fixes.
PRODUCER_DEFAULTS = {"linger.ms": "100"}
CONSUMER_DEFAULTS = {"auto.offset.reset": "earliest", "max.poll.records": "1000"}
CONSUMER_DECIDED = {"allow.auto.create.topics": "false", "enable.auto.commit": "false", "group.protocol": "classic"}
