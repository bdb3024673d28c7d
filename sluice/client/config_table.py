"""The properties of each client, as tables: names, types, defaults and validators of Kafka 4.4's *Config classes.

Different on purpose: the SASL mechanisms are PLAIN and SCRAM, without a default; key stores are PEM files.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sluice.config.value_types import (
    INT_MAX,
    LONG_MAX,
    Kind,
    boolean,
    choice,
    choice_or_none,
    integer,
    listing,
    offset_reset,
    password,
    text,
)


class Property(NamedTuple):
    """One property. `default`: as in a properties file; None is Kafka's null."""

    name: str
    kind: Kind
    default: str | None


class Table(NamedTuple):
    client: str
    properties: Mapping[str, Property]
    without_effect: frozenset[str]


def _any_case(*accepted: str) -> Kind:
    exact = choice(*accepted)
    return Kind("STRING", exact.accepts, lambda value: exact.parse(value.lower()))


def _not_empty() -> Kind:
    def parse(value: str) -> str:
        if not value.strip():
            raise ValueError
        return value.strip()

    return Kind("STRING", "text that is not empty", parse)


def _servers() -> Kind:
    def parse(value: str) -> tuple[str, ...]:
        servers = tuple(item.strip() for item in value.split(","))
        if len(set(servers)) < len(servers) or not all(map(_is_server, servers)):
            raise ValueError
        return servers

    return Kind("LIST", "HOST:PORT, separated by commas, each once", parse)


def _is_server(server: str) -> bool:
    host, _, port = server.rpartition(":")
    return bool(host) and "/" not in host and port.isascii() and port.isdigit() and 0 < int(port) <= _LARGEST_PORT


_LARGEST_PORT = 65535
_ANY_LONG = integer(-LONG_MAX - 1, LONG_MAX)
_MS = integer(0, LONG_MAX)
_INT = integer(0, INT_MAX)
_ANY_INT = integer()
_COUNT = integer(1, INT_MAX)
_BUFFER = integer(-1, INT_MAX)
_DNS_LOOKUP = choice("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")

# fmt: off
_COMMON = (
    Property("bootstrap.servers", _servers(), None),
    Property("client.dns.lookup", _DNS_LOOKUP, "use_all_dns_ips"),
    Property("client.id", text(), ""),
    Property("connections.max.idle.ms", _ANY_LONG, "540000"),
    Property("metadata.max.age.ms", _MS, "300000"),
    Property("metadata.recovery.rebootstrap.trigger.ms", _MS, "300000"),
    Property("metadata.recovery.strategy", _any_case("none", "rebootstrap"), "rebootstrap"),
    Property("metrics.num.samples", _COUNT, "2"),
    Property("metrics.sample.window.ms", _MS, "30000"),
    Property("receive.buffer.bytes", _BUFFER, "65536"),
    Property("reconnect.backoff.max.ms", _MS, "1000"),
    Property("reconnect.backoff.ms", _MS, "50"),
    Property("request.timeout.ms", _INT, "30000"),
    Property("retry.backoff.max.ms", _MS, "1000"),
    Property("retry.backoff.ms", _MS, "100"),
    Property("sasl.jaas.config", password(), None),
    Property("sasl.mechanism", choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), None),
    Property("security.protocol", _any_case("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"), "plaintext"),
    Property("send.buffer.bytes", _BUFFER, "131072"),
    Property("socket.connection.setup.timeout.max.ms", _ANY_LONG, "30000"),
    Property("socket.connection.setup.timeout.ms", _ANY_LONG, "10000"),
    Property("ssl.endpoint.identification.algorithm", choice_or_none("https"), "https"),
    Property("ssl.key.password", password(), None),
    Property("ssl.keystore.location", text(), None),
    Property("ssl.keystore.type", choice("PEM"), "PEM"),
    Property("ssl.truststore.certificates", text(), None),
    Property("ssl.truststore.location", text(), None),
    Property("ssl.truststore.type", choice("PEM"), "PEM"),
)

_PRODUCER = (
    Property("acks", choice("all", "-1", "0", "1"), "all"),
    Property("batch.size", _INT, "16384"),
    Property("buffer.memory", _MS, "33554432"),
    Property("compression.gzip.level", integer(1, 9, also=-1), "-1"),
    Property("compression.lz4.level", integer(1, 17), "9"),
    Property("compression.type", choice("none", "gzip", "snappy", "lz4", "zstd"), "none"),
    Property("compression.zstd.level", integer(-(2**17), 22), "3"),
    Property("delivery.timeout.ms", _INT, "120000"),
    Property("enable.idempotence", boolean(), "true"),
    Property("linger.ms", _MS, "5"),
    Property("max.block.ms", _MS, "60000"),
    Property("max.in.flight.requests.per.connection", _COUNT, "5"),
    Property("max.request.size", _INT, "1048576"),
    Property("metadata.max.idle.ms", integer(5000, LONG_MAX), "300000"),
    Property("partitioner.adaptive.partitioning.enable", boolean(), "true"),
    Property("partitioner.availability.timeout.ms", _MS, "0"),
    Property("partitioner.ignore.keys", boolean(), "false"),
    Property("receive.buffer.bytes", _BUFFER, "32768"),
    Property("retries", _INT, str(INT_MAX)),
    Property("transaction.timeout.ms", _ANY_INT, "60000"),
    Property("transaction.two.phase.commit.enable", boolean(), "false"),
    Property("transactional.id", _not_empty(), None),
)

_CONSUMER = (
    Property("allow.auto.create.topics", boolean(), "true"),
    Property("auto.commit.interval.ms", _INT, "5000"),
    Property("auto.offset.reset", offset_reset("earliest", "latest", "none"), "latest"),
    Property("check.crcs", boolean(), "true"),
    Property("client.rack", text(), ""),
    Property("default.api.timeout.ms", _INT, "60000"),
    Property("enable.auto.commit", boolean(), "true"),
    Property("exclude.internal.topics", boolean(), "true"),
    Property("fetch.max.bytes", _INT, "52428800"),
    Property("fetch.max.wait.ms", _INT, "500"),
    Property("fetch.min.bytes", _INT, "1"),
    Property("group.id", text(), None),
    Property("group.instance.id", _not_empty(), None),
    Property("group.protocol", _any_case("classic", "consumer"), "classic"),
    Property("group.remote.assignor", text(), None),
    Property("heartbeat.interval.ms", _ANY_INT, "3000"),
    Property("isolation.level", choice("read_committed", "read_uncommitted"), "read_uncommitted"),
    Property("max.partition.fetch.bytes", _INT, "1048576"),
    Property("max.poll.interval.ms", _COUNT, "300000"),
    Property("max.poll.records", _COUNT, "500"),
    Property("partition.assignment.strategy", listing(), "range,cooperative-sticky"),
    Property("session.timeout.ms", _ANY_INT, "45000"),
)

_ADMIN = (
    Property("connections.max.idle.ms", _ANY_LONG, "300000"),
    Property("default.api.timeout.ms", _INT, "60000"),
    Property("retries", _INT, str(INT_MAX)),
)
# fmt: on

_COMMON_WITHOUT_EFFECT = (
    "bootstrap.resolve.timeout.ms", "config.providers", "enable.metrics.push", "metadata.cluster.check.enable",
    "metric.reporters", "metrics.recording.level", "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter", "sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms",
    "security.providers", "ssl.cipher.suites", "ssl.enabled.protocols", "ssl.protocol", "ssl.provider",
)  # fmt: skip


def _table(client: str, rows: tuple[Property, ...], *without_effect: str) -> Table:
    properties = {row.name: row for row in (*_COMMON, *rows)}  # the client's own rows override common ones
    return Table(client, dict(sorted(properties.items())), frozenset((*_COMMON_WITHOUT_EFFECT, *without_effect)))


PRODUCER = _table(
    "producer",
    _PRODUCER,
    "client.rack",
    "interceptor.classes",
    "key.serializer",
    "partitioner.class",
    "partitioner.rack.aware",
    "value.serializer",
)
CONSUMER = _table(
    "consumer",
    _CONSUMER,
    "interceptor.classes",
    "key.deserializer",
    "share.acknowledgement.mode",
    "share.acquire.mode",
    "value.deserializer",
)
ADMIN = _table("admin", _ADMIN, "bootstrap.controllers")
