"""The configuration of a Streams runtime and of its clients (Kafka's StreamsConfig).

    config = StreamsConfig({"application.id": "word-count", "bootstrap.servers": "127.0.0.1:9092",
                            "task.timeout.ms": 60_000, "producer.delivery.timeout.ms": 30_000})
    config.integer("task.timeout.ms")

Client properties apply to all clients that have them or, with a prefix, to one (`producer.`, `admin.`,
`main.consumer.`, `restore.consumer.`, `global.consumer.`; `consumer.` means all consumers). `topic.` configures
internal topics. Warnings:

    retries            it has no effect (KIP-572)
    decided            a given property is fixed by Streams

Different on purpose: `retries` without a prefix does not affect the producer and the admin client. In Kafka it does,
which reduced retries by accident (KIP-572).
"""

from collections.abc import Iterable, Sequence

from sluice.client.config import ClientConfig, Given, Profile, admin_config, consumer_config, producer_config
from sluice.client.config_table import ADMIN, CONSUMER, PRODUCER, Table
from sluice.errors import ConfigError
from sluice.text.error_text import did_you_mean

from .config_table import (
    ADMIN_PREFIX,
    CLIENT_TABLES,
    CONSUMER_DECIDED,
    CONSUMER_DEFAULTS,
    CONSUMER_PREFIXES,
    PRODUCER_DEFAULTS,
    PRODUCER_PREFIX,
    STREAMS,
    TOPIC_PREFIX,
)


class StreamsConfig(ClientConfig):
    __slots__ = ("_all", "max_poll_interval_ms")

    def __init__(self, given: Given, profile: Profile = "kafka") -> None:
        """Parse all properties, including those of clients; raise ConfigError."""
        for name in given:
            if not _is_known(name):
                raise ConfigError(f"streams: {_unknown(name)}")
        own = {
            name: value for name, value in given.items() if name in STREAMS.properties or name in STREAMS.without_effect
        }
        super().__init__(STREAMS, own, profile)
        self._all = dict(given)
        for name in ("application.id", "bootstrap.servers"):
            if not self.value(name):
                raise self.error(f"{name} is missing")
        if "retries" in given:
            self.warn("retries", "retries has no effect; set task.timeout.ms, or producer.retries and admin.retries")
        self._warn_of_fixed_properties()
        for which in CONSUMER_PREFIXES:
            consumer = consumer_config(self.consumer(which, "check"), profile)
            if which == "main":
                self.max_poll_interval_ms = consumer.integer("max.poll.interval.ms")
        producer_config(self.producer("check"), profile)
        admin_config(self.admin("check"), profile)

    @property
    def application_id(self) -> str:
        return self.text("application.id")

    def producer(self, client_id: str) -> Given:
        return {**PRODUCER_DEFAULTS, **self._client(PRODUCER, [PRODUCER_PREFIX]), "client.id": client_id}

    def admin(self, client_id: str) -> Given:
        return {**self._client(ADMIN, [ADMIN_PREFIX]), "client.id": client_id}

    def consumer(self, which: str, client_id: str) -> Given:
        """Return a consumer's properties; only "main" is in the application's group."""
        given = {**CONSUMER_DEFAULTS, **self._client(CONSUMER, CONSUMER_PREFIXES[which])}
        given |= CONSUMER_DECIDED | {"client.id": client_id}
        given.pop("partition.assignment.strategy", None)
        if which == "main":
            return given | {"group.id": self.application_id}
        given.pop("group.id", None)
        given.pop("group.instance.id", None)
        return given | {"auto.offset.reset": "none"}

    @property
    def topic_configs(self) -> dict[str, str]:
        return {
            name.removeprefix(TOPIC_PREFIX): str(value)
            for name, value in self._all.items()
            if name.startswith(TOPIC_PREFIX)
        }

    def _client(self, table: Table, prefixes: Iterable[str]) -> dict[str, str | int | float | bool | Sequence[str]]:
        given = {
            name: value
            for name, value in self._all.items()
            if (name in table.properties or name in table.without_effect) and name != "retries"
        }
        for prefix in prefixes:
            given |= {name.removeprefix(prefix): value for name, value in self._all.items() if name.startswith(prefix)}
        given["bootstrap.servers"] = self._all["bootstrap.servers"]
        return given

    def _warn_of_fixed_properties(self) -> None:
        decided = {*CONSUMER_DECIDED, "group.id", "partition.assignment.strategy"}
        given = [
            name for name in self._all if name.rpartition("consumer.")[2] in decided and name not in STREAMS.properties
        ]
        if given:
            self.warn("decided", f"{', '.join(given)}: Streams sets these properties; the given values have no effect")


def _is_known(name: str) -> bool:
    tables = [STREAMS, PRODUCER, CONSUMER, ADMIN]
    if any(name in table.properties or name in table.without_effect for table in tables):
        return True
    for prefix, table in CLIENT_TABLES.items():
        bare = name.removeprefix(prefix)
        if bare != name and (bare in table.properties or bare in table.without_effect):
            return True
    return name.startswith(TOPIC_PREFIX)


def _unknown(name: str) -> str:
    known = {*STREAMS.properties, *PRODUCER.properties, *CONSUMER.properties, *ADMIN.properties}
    known |= {f"{prefix}{one}" for prefix, table in CLIENT_TABLES.items() for one in table.properties}
    return f"{name}: no such property{did_you_mean(name, sorted(known))}"
