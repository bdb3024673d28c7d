"""The configuration of a client: properties with Kafka's names and defaults, validated together.

    config = producer_config({"bootstrap.servers": "127.0.0.1:9092", "linger.ms": 20})
    config.integer("linger.ms")

Follows `postProcessParsedConfig` of ProducerConfig, ConsumerConfig and AdminClientConfig. ConfigException is
`ConfigError` here. Kafka's warnings are logged and kept in `ClientConfig.warnings`:

    static_retry_backoff              retry.backoff.ms exceeds its maximum: the backoff is always the maximum (KIP-580)
    static_connection_setup_timeout   the same for socket.connection.setup.timeout.ms (KIP-601)
    constant_reconnect_backoff        reconnect.backoff.ms is set without a maximum, and becomes the maximum (KIP-144)
    delivery_timeout_raised           default delivery.timeout.ms is below linger.ms + request.timeout.ms (KIP-91)
    connections_idle_before_poll      connections.max.idle.ms is below max.poll.interval.ms

Different on purpose: an unknown property is an error that suggests similar names; Kafka logs it. With the profile
"kip", `delivery.timeout.ms` must also cover one `retry.backoff.ms` (KIP-91), and the default of `reconnect.backoff.ms`
is 100 (KIP-144).
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Literal

from sluice.config.value_types import INT_MAX, Value, Values, text_of
from sluice.errors import ConfigError
from sluice.text.error_text import did_you_mean, expected

from . import backoff
from .config_table import ADMIN, CONSUMER, PRODUCER, Property, Table
from .jaas import jaas_options

log = logging.getLogger("sluice.client")

Profile = Literal["kafka", "kip"]
Given = Mapping[str, str | int | float | bool | Sequence[str]]

# With more, the broker could not distinguish a retry behind later batches from a sequence gap (KAFKA-5494).
_MOST_IN_FLIGHT_FOR_IDEMPOTENCE = 5
_KIP_144_RECONNECT_BACKOFF_MS = 100
# Values that Kafka accepts and this client does not: the supported value, and the reason.
_SUPPORTED: Mapping[str, tuple[str, str]] = {
    "client.dns.lookup": (
        "use_all_dns_ips",
        "names of bootstrap.servers are not replaced by canonical ones here; use_all_dns_ips is accepted",
    ),
    "group.protocol": ("classic", "this client speaks the classic protocol only"),
}
_producer_numbers, _consumer_numbers, _admin_numbers = count(1), count(1), count(1)


class ClientConfig(Values):
    def __init__(self, table: Table, given: Given, profile: Profile) -> None:
        self.client = table.client
        self.profile = profile
        self.warnings: dict[str, str] = {}
        self._given = frozenset(given)
        values: dict[str, Value] = {
            row.name: None if row.default is None else row.kind.parse(row.default) for row in table.properties.values()
        }
        unused = [name for name in given if name in table.without_effect]
        for name, value in given.items():
            row = table.properties.get(name)
            if row is not None:
                values[name] = _parsed(table.client, row, value)
            elif name not in table.without_effect:
                raise ConfigError(f"{table.client}: {_unknown(name, table)}")
        super().__init__(values)
        if unused:
            log.info("properties without effect", extra={"client": table.client, "names": ",".join(unused)})

    def is_set(self, name: str) -> bool:
        return name in self._given

    def text_or_none(self, name: str) -> str | None:
        value = self._values[name]
        assert value is None or isinstance(value, str), name
        return value

    @property
    def uses_tls(self) -> bool:
        return self.text("security.protocol").endswith("ssl")

    @property
    def uses_sasl(self) -> bool:
        return self.text("security.protocol").startswith("sasl")

    def sasl_options(self) -> dict[str, str]:
        return jaas_options(self.text("sasl.jaas.config"))

    def retry_backoff(self, uniform: backoff.Uniform) -> backoff.Backoff:
        base_ms, max_ms = self.integer("retry.backoff.ms"), self.integer("retry.backoff.max.ms")
        if self.profile == "kip":
            return backoff.KipRetryBackoff(base_ms, max_ms, uniform)
        return backoff.ExponentialBackoff(base_ms, backoff.RETRY_MULTIPLIER, max_ms, backoff.RETRY_JITTER, uniform)

    def equivalent_response_backoff(self, uniform: backoff.Uniform) -> backoff.Backoff | None:
        """Return the backoff after unchanged metadata; KIP-580 has none."""
        return None if self.profile == "kip" else self.retry_backoff(uniform)

    def reconnect_backoff(self, uniform: backoff.Uniform) -> backoff.Backoff:
        base_ms, max_ms = self.integer("reconnect.backoff.ms"), self.integer("reconnect.backoff.max.ms")
        if self.profile == "kip":
            return backoff.KipReconnectBackoff(base_ms, max_ms, uniform)
        return backoff.ExponentialBackoff(base_ms, backoff.RETRY_MULTIPLIER, max_ms, backoff.RETRY_JITTER, uniform)

    def connection_setup_timeout(self, uniform: backoff.Uniform) -> backoff.Backoff:
        """Return KIP-601's timeout, which grows with each failure."""
        base_ms = self.integer("socket.connection.setup.timeout.ms")
        max_ms = self.integer("socket.connection.setup.timeout.max.ms")
        return backoff.ExponentialBackoff(base_ms, backoff.RETRY_MULTIPLIER, max_ms, backoff.RETRY_JITTER, uniform)

    def ensure_supported(self) -> None:
        for name, (accepted, reason) in _SUPPORTED.items():
            value = self._values.get(name, accepted)
            if value != accepted:
                raise self.error(f"{name}={value}: {reason}")

    def set(self, name: str, value: Value) -> None:
        assert name in self._values, name
        self._values[name] = value

    def warn(self, reason: str, line: str) -> None:
        self.warnings[reason] = line
        log.warning(line, extra={"client": self.client})

    def error(self, line: str) -> ConfigError:
        return ConfigError(f"{self.client}: {line}")


Rule = Callable[[ClientConfig], None]


def producer_config(given: Given, profile: Profile = "kafka") -> ClientConfig:
    return _checked(PRODUCER, given, profile, _PRODUCER_RULES)


def consumer_config(given: Given, profile: Profile = "kafka") -> ClientConfig:
    return _checked(CONSUMER, given, profile, _CONSUMER_RULES)


def admin_config(given: Given, profile: Profile = "kafka") -> ClientConfig:
    return _checked(ADMIN, given, profile, _ADMIN_RULES)


def _checked(table: Table, given: Given, profile: Profile, rules: Sequence[Rule]) -> ClientConfig:
    config = ClientConfig(table, given, profile)
    if config.value("bootstrap.servers") is None:
        raise config.error("bootstrap.servers is missing; expected HOST:PORT, separated by commas")
    for rule in rules:
        rule(config)
    return config


def _parsed(client: str, row: Property, value: object) -> Value:
    given = _text(value)
    try:
        return row.kind.parse(given)
    except ValueError:
        # A password accepts any text, so no message contains one.
        raise ConfigError(f"{client}: {row.name}: {expected(row.kind.accepts, given)}") from None


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool | float):
        return text_of(value) or ""
    return str(value)


def _unknown(name: str, table: Table) -> str:
    return f"{name}: no such property{did_you_mean(name, table.properties)}"


# -- rules of all clients ----------------------------------------------------------------------------------------------


def _warn_of_static_waits(config: ClientConfig) -> None:
    for reason, name, maximum, label in (
        ("static_retry_backoff", "retry.backoff.ms", "retry.backoff.max.ms", "backoff"),
        (
            "static_connection_setup_timeout",
            "socket.connection.setup.timeout.ms",
            "socket.connection.setup.timeout.max.ms",
            "connection setup timeout",
        ),
    ):
        value, most = config.integer(name), config.integer(maximum)
        if value > most:
            line = f"{name}={value} is above {maximum}={most}: a static {label} of {most} ms is used"
            config.warn(reason, line)


def _reconnect_backoff_set_alone(config: ClientConfig) -> None:
    name, maximum = "reconnect.backoff.ms", "reconnect.backoff.max.ms"
    if config.profile == "kip" and not config.is_set(name):
        config.set(name, _KIP_144_RECONNECT_BACKOFF_MS)
    if config.is_set(name) and not config.is_set(maximum):
        config.set(maximum, config.integer(name))
        line = f"{name} is set and {maximum} is not: the reconnect backoff does not grow"
        config.warn("constant_reconnect_backoff", line)


def _sasl(config: ClientConfig) -> None:
    if not config.uses_sasl:
        return
    mechanism = config.value("sasl.mechanism")
    if mechanism is None or config.value("sasl.jaas.config") is None:
        raise config.error(
            f"security.protocol={config.text('security.protocol')} requires sasl.mechanism and sasl.jaas.config"
        )
    try:
        options = config.sasl_options()
    except ValueError as error:
        raise config.error(f"sasl.jaas.config=[hidden]: {error}") from None
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise config.error(f"sasl.jaas.config=[hidden]: has no {' and no '.join(missing)}")


# -- producer rules ----------------------------------------------------------------------------------------------------


def _acks_as_number(config: ClientConfig) -> None:
    if config.text("acks") == "all":
        config.set("acks", "-1")


def _idempotence(config: ClientConfig) -> None:
    """Disable idempotence if it conflicts with `retries` or `acks`; raise ConfigError if it was enabled explicitly."""
    if config.boolean("enable.idempotence"):
        for name, needed, is_met in (
            ("retries", "above 0", config.integer("retries") > 0),
            ("acks", "all", config.text("acks") == "-1"),
        ):
            if is_met:
                continue
            if config.is_set("enable.idempotence"):
                raise config.error(f"enable.idempotence=true requires {name} {needed}, got {config.value(name)}")
            log.info("idempotence disabled", extra={"because": f"{name}={config.value(name)}"})
            config.set("enable.idempotence", False)
        in_flight = config.integer("max.in.flight.requests.per.connection")
        if in_flight > _MOST_IN_FLIGHT_FOR_IDEMPOTENCE:
            needed = f"max.in.flight.requests.per.connection at most {_MOST_IN_FLIGHT_FOR_IDEMPOTENCE}"
            raise config.error(f"enable.idempotence=true requires {needed}, got {in_flight}")


def _transactions(config: ClientConfig) -> None:
    if config.is_set("transactional.id") and not config.boolean("enable.idempotence"):
        raise config.error("transactional.id requires enable.idempotence=true")
    if config.boolean("transaction.two.phase.commit.enable") and config.is_set("transaction.timeout.ms"):
        raise config.error("transaction.timeout.ms cannot be set with transaction.two.phase.commit.enable=true")


def _producer_client_id(config: ClientConfig) -> None:
    if not config.is_set("client.id"):
        config.set("client.id", f"producer-{config.text_or_none('transactional.id') or next(_producer_numbers)}")


def _delivery_timeout(config: ClientConfig) -> None:
    """Ensure that `delivery.timeout.ms` covers one attempt (KIP-91)."""
    parts = ["linger.ms", "request.timeout.ms"] + ["retry.backoff.ms"] * (config.profile == "kip")
    needed = min(sum(config.integer(part) for part in parts), INT_MAX)
    given = config.integer("delivery.timeout.ms")
    if given >= needed:
        return
    words = " + ".join(parts)
    if config.is_set("delivery.timeout.ms"):
        raise config.error(f"delivery.timeout.ms: {expected(f'at least {words} ({needed})', given)}")
    config.set("delivery.timeout.ms", needed)
    config.warn("delivery_timeout_raised", f"delivery.timeout.ms={given} is below {words}: {needed} is used")


# -- consumer rules ----------------------------------------------------------------------------------------------------

_NOT_OF_PROTOCOL = {
    "classic": ("group.remote.assignor", "share.acknowledgement.mode", "share.acquire.mode"),
    "consumer": (
        "heartbeat.interval.ms",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "share.acknowledgement.mode",
        "share.acquire.mode",
    ),
}


def _consumer_client_id(config: ClientConfig) -> None:
    if not config.text("client.id"):
        part = config.text_or_none("group.instance.id") or next(_consumer_numbers)
        config.set("client.id", f"consumer-{config.text_or_none('group.id') or 'null'}-{part}")


def _auto_commit(config: ClientConfig) -> None:
    if config.value("group.id") is not None:
        return
    if config.is_set("enable.auto.commit") and config.boolean("enable.auto.commit"):
        raise config.error("enable.auto.commit=true requires group.id")
    config.set("enable.auto.commit", False)


def _group_protocol(config: ClientConfig) -> None:
    protocol = config.text("group.protocol")
    wrong = [name for name in _NOT_OF_PROTOCOL[protocol] if config.is_set(name)]
    if wrong:
        raise config.error(f"{', '.join(wrong)} cannot be set with group.protocol={protocol}")


def _idle_before_poll(config: ClientConfig) -> None:
    idle_ms, poll_ms = config.integer("connections.max.idle.ms"), config.integer("max.poll.interval.ms")
    if config.text("group.protocol") == "classic" and 0 <= idle_ms < poll_ms:
        line = (
            f"connections.max.idle.ms={idle_ms} is below max.poll.interval.ms={poll_ms}: the coordinator's connection "
            "may be closed during a rebalance"
        )
        config.warn("connections_idle_before_poll", line)


# -- admin client rules ------------------------------------------------------------------------------------------------


def _admin_client_id(config: ClientConfig) -> None:
    if not config.text("client.id"):
        config.set("client.id", f"adminclient-{next(_admin_numbers)}")


_COMMON_RULES = (_sasl, _warn_of_static_waits, _reconnect_backoff_set_alone)
_PRODUCER_RULES = (*_COMMON_RULES, _acks_as_number, _idempotence, _transactions, _producer_client_id, _delivery_timeout)
_CONSUMER_RULES = (*_COMMON_RULES, _consumer_client_id, _auto_commit, _group_protocol, _idle_before_poll)
_ADMIN_RULES = (*_COMMON_RULES, _admin_client_id)
