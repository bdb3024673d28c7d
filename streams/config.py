"""A Streams runtime's settings in force, and what its clients are configured with. Kafka's StreamsConfig.

    config = StreamsConfig({"application.id": "word-count", "bootstrap.servers": "127.0.0.1:9092",
                            "task.timeout.ms": 60_000, "producer.delivery.timeout.ms": 30_000})
    config.integer("task.timeout.ms")

Names of clients can be given too: to all clients that have them, or, with a prefix, to one (`producer.`, `admin.`,
`consumer.` for all consumers, `main.consumer.`, `restore.consumer.`, `global.consumer.` for one). `topic.` is for the
topics that are made. What is odd is a warning, kept by its reason (`warnings`):

    retries            it has no effect (KIP-572)
    decided            what Streams decides for its consumers was given

Different on purpose: `retries` without a prefix has no effect on the producer and the admin client either. Kafka gives
it to them, by which, the KIP says, people reduced their retries by accident; `producer.retries` says what is meant.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from sluice.client.config import ClientConfig, Given, Profile, admin_config, consumer_config, producer_config
from sluice.client.config_table import ADMIN, CONSUMER, PRODUCER, Table
from sluice.errors import ConfigError

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
    """What one runtime was configured with."""

    __slots__ = ("_all", "max_poll_interval_ms")

    def __init__(self, given: Given, profile: Profile = "kafka") -> None:
        """Raises ConfigError, a line that names key, value and what is accepted: of the clients' settings too."""
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
            self.warn("retries", "retries has no effect; task.timeout.ms has, or producer.retries and admin.retries")
        self._warn_of_what_is_decided()
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
        """What the thread's producer is given."""
        return {**PRODUCER_DEFAULTS, **self._client(PRODUCER, [PRODUCER_PREFIX]), "client.id": client_id}

    def admin(self, client_id: str) -> Given:
        """What the admin client is given."""
        return {**self._client(ADMIN, [ADMIN_PREFIX]), "client.id": client_id}

    def consumer(self, which: str, client_id: str) -> Given:
        """What a consumer is given: "main" is in the application's group, "restore" and "global" in none."""
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
        """What topics are made with, beside what they are made with by themselves."""
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

    def _warn_of_what_is_decided(self) -> None:
        decided = {*CONSUMER_DECIDED, "group.id", "partition.assignment.strategy"}
        given = [
            name for name in self._all if name.rpartition("consumer.")[2] in decided and name not in STREAMS.properties
        ]
        if given:
            self.warn("decided", f"{', '.join(given)}: Streams decides that, what was given has no effect")


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
    close = get_close_matches(name, sorted(known), n=3)
    return f"{name}: no such property" + (f"; close: {', '.join(close)}" if close else "")
