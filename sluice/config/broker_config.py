"""Effective configuration of a broker (Config) and of a topic (TopicConfig); the tables are in property_table.py.

A later source wins: default, file, environment, override. A topic's own config overrides the broker property. Different
on purpose: an unknown name is an error that suggests similar names (Kafka ignores it). A name that only Kafka supports
is accepted with a warning.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from ipaddress import ip_address
from itertools import chain, dropwhile
from os import PathLike

from sluice.errors import ConfigError
from sluice.text.error_text import did_you_mean, expected

from .group_ranges import group_problem
from .invalid_value import invalid_value
from .kafka_releases import ALL
from .listener_config import ListenerConfig, row_of_listener
from .properties_file import read_properties
from .property_table import ALIASES, PROPERTIES, TOPIC_DEFAULT_OF, TOPIC_PROPERTIES, Property
from .setting import (
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    STATIC_BROKER_CONFIG,
    Setting,
    Synonym,
)
from .value_types import Value, Values, split_list, text_of

# Hosts that mean all interfaces, so clients cannot connect to them.
EVERYWHERE = ("", "0.0.0.0", "::")


class Endpoint:
    """One entry of `listeners` or `advertised.listeners`. An empty host means all interfaces."""

    __slots__ = ("host", "name", "port")

    def __init__(self, name: str, host: str, port: int) -> None:
        self.name = name
        self.host = host
        self.port = port

    def __str__(self) -> str:
        return address_of(self.host, self.port)


def address_of(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host or '0.0.0.0'}:{port}"


_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000
# Times with several properties, and the factor of each to milliseconds. The finest unit applies.
_UNITS_MS = {
    "log.retention.ms": {"log.retention.ms": 1, "log.retention.minutes": _MINUTE_MS, "log.retention.hours": _HOUR_MS},
    "log.roll.ms": {"log.roll.ms": 1, "log.roll.hours": _HOUR_MS},
    "log.roll.jitter.ms": {"log.roll.jitter.ms": 1, "log.roll.jitter.hours": _HOUR_MS},
}
_SAME_TIME = {name: tuple(units) for units in _UNITS_MS.values() for name in units} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}
_NODE_IDS = ("node.id", "broker.id")
MIN_ISR = "min.insync.replicas"
# Releases with eligible leader replicas (KIP-966), which store this property as a dynamic default of the cluster.
_WITH_ELR = ("all", "kafka-4.4")
_SEGMENT_BYTES_ON_DISK = 2**30  # Kafka's default
_LARGEST_PORT = 65535
_LISTENER_PREFIX = "listener.name."
_SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Config(Values):
    """The effective configuration of a broker. `warnings` has one line per source with names that have no effect."""

    __slots__ = ("_defaults", "_dynamic", "_kept", "_origins", "_racks", "_static", "warnings")

    def __init__(self) -> None:
        super().__init__(_default_values().copy())
        self._static = self._values
        self._defaults = {row.name: row.default for row in PROPERTIES.values() if row.name not in _NODE_IDS}
        self._dynamic: dict[str, Mapping[str, str]] = {}  # by source
        self._kept: dict[str, str] = {}  # properties without effect
        self._racks: tuple[str, ...] = ()  # assigned to the brokers in turn
        self._origins: dict[str, str] = {}
        self.warnings: list[str] = []

    @classmethod
    def load(
        cls,
        file: str | PathLike[str] | None = None,
        overrides: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
    ) -> "Config":
        """Load defaults, file, `KAFKA_*` variables, then each KEY=VALUE of `overrides`.

        Raises:
            ConfigError: One line with the source, the key, the value and the accepted values.
        """
        config = cls()
        if file is not None:
            config._apply(f"{file}", read_file(file))
        if environ is not None:
            config._apply_environment(environ)
        config._apply("--override", (("--override", *_split_override(item)) for item in overrides))
        config._check_together()
        return config

    @classmethod
    def of(cls, properties: Mapping[str, str | float]) -> "Config":
        config = cls()
        config._apply("config", (("config", name, format_value(value)) for name, value in properties.items()))
        config._check_together()
        return config

    def of_node(self, node_id: int) -> "Config":
        """Return the configuration of one broker; the first broker shares this object with the cluster."""
        self._racks = self._racks or split_list(str(self._static["broker.rack"] or ""))
        first = self.integer("node.id")
        own: dict[str, Value] = {"node.id": node_id}
        if self._racks:
            own["broker.rack"] = self._racks[(node_id - first) % len(self._racks)]
        if node_id == first:
            self._static.update(own)
            self._values.update(own)
            return self
        other = copy(self)
        other._static = other._values = self._static | own
        other._dynamic = {DYNAMIC_DEFAULT_BROKER_CONFIG: self.cluster_defaults()}
        return other

    def set_dynamic(self, per_broker: Mapping[str, str], cluster_wide: Mapping[str, str]) -> None:
        """Apply valid dynamic configs (KIP-226): per-broker before cluster-wide, both before static ones."""
        self._dynamic = {
            DYNAMIC_BROKER_CONFIG: per_broker,
            DYNAMIC_DEFAULT_BROKER_CONFIG: {**self.cluster_defaults(), **cluster_wide},
        }
        altered = {**cluster_wide, **per_broker}
        self._values = self._static | {
            name: row.kind.parse(altered[name]) for name in altered if (row := row_of(name)) and _is_alterable(name)
        }

    def has_elr(self) -> bool:
        return self._static["sluice.kafka.release"] in _WITH_ELR

    def cluster_defaults(self) -> dict[str, str]:
        """Return the dynamic defaults that a cluster has from its start."""
        return {MIN_ISR: text_of(self._static[MIN_ISR]) or ""} if self.has_elr() else {}

    def synonyms(self, name: str, *bases: Property) -> list[Synonym]:
        """Return the sources that define a property, in order of precedence.

        As in Kafka, they start at the property itself: for a retention set in hours, `log.retention.ms` has none.
        `bases` are properties whose values and defaults also apply, as the broker's to `listener.name.` properties.
        """
        names = (*_SAME_TIME.get(name, (name,)), *(row.name for row in bases if row.name != name))
        static = {key: self._static_text(key) for key in names}
        defaults = {row.name: row.default for row in bases}
        defaults |= {key: self._defaults[key] for key in names if key in self._defaults}
        layers: list[tuple[str, Mapping[str, str | None]]] = [
            *self._dynamic.items(),
            (STATIC_BROKER_CONFIG, static),
            (DEFAULT_CONFIG, defaults),
        ]
        found = [
            Synonym(key, text, source)
            for source, values in layers
            for key in names
            if (text := values.get(key)) is not None
        ]
        return list(dropwhile(lambda synonym: synonym.name != name, found))

    def _static_text(self, name: str) -> str | None:
        if name in _NODE_IDS:  # Kafka requires it in the properties
            return str(self.integer("node.id"))
        if name not in self._origins:
            return None
        return self._kept[name] if name in self._kept else text_of(self._static[name])

    def set_names(self) -> Iterable[str]:
        """Return all names with a static or dynamic value, even without effect."""
        return dict.fromkeys(chain(self._origins, *self._dynamic.values()))

    def is_set(self, name: str) -> bool:
        return name in self._origins or any(name in altered for altered in self._dynamic.values())

    def origin(self, name: str) -> str:
        return self._origins.get(name, "default")

    def entries(self) -> list[Setting]:
        """Return the properties with an effect; described_config.py adds the others."""
        return [self._setting(row) for row in PROPERTIES.values()]

    def _setting(self, row: Property) -> Setting:
        synonyms = self.synonyms(row.name)
        is_dynamic = bool(synonyms) and synonyms[0].source in self._dynamic
        value = synonyms[0].value if is_dynamic else text_of(self._values[row.name])
        return Setting(row, value, synonyms, self.origin(row.name))

    def milliseconds(self, name: str) -> int:
        """Return the time named `name`, which properties in several units can set; -1: no limit."""
        units_ms = _UNITS_MS[name]
        finest = next(unit for unit in units_ms if self._values[unit] is not None)  # hours have a default
        return max(-1, self.integer(finest) * units_ms[finest])

    def flush_interval_ms(self) -> int:
        """Return the default of `flush.ms`."""
        is_unset = self._values["log.flush.interval.ms"] is None
        return self.integer("log.flush.scheduler.interval.ms" if is_unset else "log.flush.interval.ms")

    def listeners(self, broker: int = 0) -> list[Endpoint]:
        """Return the listeners of a broker; its index is added to each port."""
        return self._endpoints("listeners", broker)

    def advertised_listeners(self, broker: int = 0) -> list[Endpoint]:
        """Return an empty list if unset: the addresses of `listeners` are then advertised."""
        return self._endpoints("advertised.listeners", broker) if self._values["advertised.listeners"] else []

    def security_protocol(self, listener: str) -> str:
        return self._protocols()[listener]

    def of_listener(self, listener: str) -> ListenerConfig:
        return ListenerConfig(listener, self._values, self._origins)

    def _protocols(self) -> dict[str, str]:
        # An entry without a colon maps to an empty protocol, which `_check_listeners` rejects.
        pairs = (item.upper().partition(":") for item in self.names("listener.security.protocol.map"))
        return {listener.strip(): protocol.strip() for listener, _, protocol in pairs}

    def _endpoints(self, name: str, broker: int) -> list[Endpoint]:
        controllers = {controller.upper() for controller in self.names("controller.listener.names")}
        endpoints = [self._endpoint(name, item) for item in self.names(name)]
        for endpoint in endpoints:
            if endpoint.port:  # 0: each broker gets a free port
                endpoint.port += broker
        return [endpoint for endpoint in endpoints if endpoint.name not in controllers]

    def _endpoint(self, name: str, item: str) -> Endpoint:
        listener, slashes, address = item.partition("://")
        host, colon, port = address.rpartition(":")
        if not (listener and slashes and colon and port.isascii() and port.isdigit() and int(port) <= _LARGEST_PORT):
            raise self.wrong(name, item, "NAME://HOST:PORT")
        return Endpoint(listener.upper(), host.removeprefix("[").removesuffix("]"), int(port))

    def _apply_environment(self, environ: Mapping[str, str]) -> None:
        pairs = [(key, _name_from_environment(key), environ[key]) for key in sorted(environ) if _is_property(key)]
        unknown = [key for key, name, _ in pairs if not _is_known(name)]
        if unknown:
            self.warnings.append("environment: unknown properties, ignored: " + ", ".join(unknown))
        self._apply("environment", (pair for pair in pairs if pair[0] not in unknown))

    def _apply(self, source: str, pairs: Iterable[tuple[str, str, str]]) -> None:
        unused = []
        for origin, key, value in pairs:
            name = ALIASES.get(key, key)
            row = row_of(name)
            is_in_table = row is not None
            if row is None:
                if not _is_known(name):
                    raise ConfigError(f"{origin}: {_unknown(name)}")
                row = _row_without_effect(name)
            if not is_in_table or row.has_no_effect:
                unused.append(name)
            try:
                parsed = row.kind.parse(value)
                if is_in_table:
                    self._values[name] = parsed
                else:
                    self._kept[name] = text_of(parsed) or ""
            except ValueError as error:
                secret = row.kind.type == "PASSWORD"
                shown, where = ("[hidden]", "") if secret else (value, _where(error))
                raise _error(origin, key, shown, row.kind.accepts, where) from None
            self._origins[name] = origin
        if unused:
            self.warnings.append(f"{source}: Kafka properties without effect: " + ", ".join(dict.fromkeys(unused)))

    def _check_together(self) -> None:
        self._check_listeners()
        self._check_queued_bytes()
        if not self.integer("max.connections.per.ip") and not self.rates("max.connections.per.ip.overrides"):
            words = "at least 1, unless max.connections.per.ip.overrides is set"
            raise self.wrong("max.connections.per.ip", "0", words)
        if (problem := group_problem(self)) is not None:
            name, accepted = problem
            raise self.wrong(name, str(self.integer(name)), accepted)
        self._check_directory()
        self._dynamic = {DYNAMIC_DEFAULT_BROKER_CONFIG: self.cluster_defaults()}
        host = self.text("sluice.admin.host")
        if not self.text("sluice.admin.token") and not _is_loopback(host):
            raise self.wrong("sluice.admin.host", host, "a loopback address, unless sluice.admin.token is set")

    def _check_listeners(self) -> None:
        endpoints = self.listeners()
        own = [endpoint.name for endpoint in endpoints]
        brokers = self.integer("sluice.brokers")
        ports = [
            endpoint.port for broker in range(brokers) for endpoint in self.listeners(broker) if endpoint.port
        ]  # port 0: each broker gets a free port
        given = ",".join(self.names("listeners"))
        if not own or len(set(own)) < len(own) or len(set(ports)) < len(ports):
            apart = f", {brokers} apart for as many brokers" if brokers > 1 else ""
            words = "at least one listener for clients, each with its own name and port"
            raise self.wrong("listeners", given, words + apart)
        if ports and max(ports) > _LARGEST_PORT:
            raise self.wrong("listeners", given, f"ports up to {_LARGEST_PORT + 1 - brokers} for {brokers} brokers")
        protocols = self._protocols()
        for name in own:
            if name not in protocols:
                raise self.wrong("listeners", given, f"listeners of listener.security.protocol.map, without {name}")
            if protocols[name] not in _SECURITY_PROTOCOLS:
                words = f"NAME:PROTOCOL with one of {', '.join(_SECURITY_PROTOCOLS)} for {name}, separated by commas"
                map_name = "listener.security.protocol.map"
                raise self.wrong(map_name, ",".join(self.names(map_name)), words)
        self._warn_of_unknown(own)
        for endpoint in self.advertised_listeners():
            if endpoint.name not in own or endpoint.host in EVERYWHERE:
                words = f"NAME://HOST:PORT with a name of listeners ({', '.join(own)}) and a host clients can reach"
                raise self.wrong("advertised.listeners", ",".join(self.names("advertised.listeners")), words)

    def _warn_of_unknown(self, own: Iterable[str]) -> None:
        prefixes = tuple(f"{_LISTENER_PREFIX}{name.lower()}." for name in own)
        listeners = (name for name in self._origins if name.startswith(_LISTENER_PREFIX) and name not in self._kept)
        strays = [name for name in listeners if not name.startswith(prefixes)]
        if strays:
            self.warnings.append(f"properties of unknown listeners (names are in lower case): {', '.join(strays)}")

    def _check_queued_bytes(self) -> None:
        name = "queued.max.request.bytes"
        queued, largest = self.integer(name), self.integer("socket.request.max.bytes")
        if 0 <= queued < largest:  # the largest request could never be read
            if name in self._origins:
                raise self.wrong(name, str(queued), f"at least socket.request.max.bytes ({largest}), or -1")
            self._raise_default(name, largest)  # Kafka has no limit

    def _check_directory(self) -> None:
        path = self.text("log.dirs")
        if "," in path:
            raise self.wrong("log.dirs", path, "one directory")
        if path:
            self._raise_default("log.segment.bytes", _SEGMENT_BYTES_ON_DISK)  # sluice's own default is for memory

    def _raise_default(self, name: str, value: int) -> None:
        self._defaults[name] = str(value)
        if name not in self._origins:
            self._values[name] = value

    def wrong(self, name: str, value: str, accepted: str) -> ConfigError:
        """Return the error about a value whose property cannot be checked alone."""
        return _error(self.origin(name), name, value, accepted)


class TopicConfig(Values):
    """The effective configuration of one topic. `own`: configs set on the topic, valid by `refused_topic_configs`."""

    __slots__ = ("_broker", "own")

    def __init__(self, broker: Config, own: Mapping[str, str]) -> None:
        super().__init__({row.name: _in_force(row, broker, own) for row in TOPIC_PROPERTIES.values()})
        self._broker = broker
        self.own = own

    def segment_bytes(self) -> int:
        internal = self._values["internal.segment.bytes"]
        return max(internal, 1) if isinstance(internal, int) else self.integer("segment.bytes")

    def entries(self) -> list[Setting]:
        """Return the configs of the release; internal.segment.bytes only if it is set, as in Kafka."""
        release = self._broker.text("sluice.kafka.release")
        return [
            self._setting(row)
            for row in TOPIC_PROPERTIES.values()
            if row.name in self.own or (row.name != "internal.segment.bytes" and _has_config(release, row))
        ]

    def _setting(self, row: Property) -> Setting:
        value = text_of(self._values[row.name])
        default_of = TOPIC_DEFAULT_OF.get(row.name)
        synonyms = [] if default_of is None else self._broker.synonyms(default_of)
        if row.name in self.own:
            return Setting(row, value, [Synonym(row.name, value or "", DYNAMIC_TOPIC_CONFIG), *synonyms], "topic")
        return Setting(row, value, synonyms, "default" if default_of is None else self._broker.origin(default_of))


def refused_topic_configs(broker: Config, own: Mapping[str, str]) -> str | None:
    release = broker.text("sluice.kafka.release")
    for name in own:
        if name not in TOPIC_PROPERTIES or not _has_config(release, TOPIC_PROPERTIES[name]):
            return f"Unknown topic config name: {name}"
    problems = (_problem(row, own[name]) for name, row in TOPIC_PROPERTIES.items() if name in own)
    return next(filter(None, problems), None) or _conflict(
        Values({name: _in_force(TOPIC_PROPERTIES[name], broker, own) for name in _COMPARED})
    )


def _problem(row: Property, value: str) -> str | None:
    if row.name == "cleanup.policy":  # Kafka removes duplicates first
        value = ",".join(dict.fromkeys(split_list(value)))
    return invalid_value(row.name, row.kind, value)


def _has_config(release: str, row: Property) -> bool:
    if release == ALL and not row.has_no_effect:
        return True

    from .config_releases import has_config  # most brokers never need it

    return has_config(release, "topic", row.name)


_COMPARED = _LEAST_LAG, _MOST_LAG, _REMOTE = "min.compaction.lag.ms", "max.compaction.lag.ms", "remote.storage.enable"


def _conflict(config: Values) -> str | None:
    least, most = config.integer(_LEAST_LAG), config.integer(_MOST_LAG)
    if least > most:
        return f"conflict topic config setting {_LEAST_LAG} ({least}) > {_MOST_LAG} ({most})"
    if config.boolean(_REMOTE):
        return (
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    return None


def _in_force(row: Property, broker: Config, own: Mapping[str, str]) -> Value:
    if row.name in own:
        return row.kind.parse(own[row.name])
    default_of = TOPIC_DEFAULT_OF.get(row.name)
    if default_of in _UNITS_MS:
        return broker.milliseconds(default_of)
    if row.name == "flush.ms":
        return broker.flush_interval_ms()
    if default_of is not None:
        return broker.value(default_of)
    return _topic_default_values()[row.name]


@cache
def _default_values() -> dict[str, Value]:
    return _parse_defaults(PROPERTIES)


@cache
def _topic_default_values() -> dict[str, Value]:
    return _parse_defaults(TOPIC_PROPERTIES)


def _parse_defaults(rows: Mapping[str, Property]) -> dict[str, Value]:
    return {name: None if row.default is None else row.kind.parse(row.default) for name, row in rows.items()}


def read_file(file: str | PathLike[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (place, key, value) of a properties file. Raises ConfigError."""
    try:
        with open(file, encoding="utf-8") as opened:  # noqa: PTH123  (importing pathlib takes 5 ms of a start)
            content = opened.read()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: expected UTF-8 text") from None
    try:
        for number, key, value in read_properties(content):
            yield f"{file} line {number}", key, value
    except ConfigError as error:
        raise ConfigError(f"{file} {error}") from None


def _error(origin: str, name: str, value: str, accepted: str, where: str = "") -> ConfigError:
    return ConfigError(f"{origin}: {name}: {where}{expected(accepted, value)}")


def _where(error: ValueError) -> str:
    # Errors of `float` and other conversions have texts for programmers.
    return f"{error}: " if str(error).startswith("item ") else ""


def format_value(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _split_override(item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not (key.strip() and equals):
        raise ConfigError(f"--override: {expected('KEY=VALUE', item)}")
    return key.strip(), value


def _is_property(key: str) -> bool:
    if not key.startswith("KAFKA_"):
        return key == "CLUSTER_ID"  # used by images to format the storage
    from .ignored_properties import ENVIRONMENT

    return key not in ENVIRONMENT


def _name_from_environment(key: str) -> str:
    """Decode as the Apache image (KafkaDockerWrapper): `_` is `.`, `__` is `_`, `___` is `-`. Bitnami adds CFG_."""
    name = key.removeprefix("KAFKA_").removeprefix("CFG_").lower()
    return name.replace("_", ".").replace("...", "-").replace("..", "_")


def _is_known(name: str) -> bool:
    if name in PROPERTIES or name in ALIASES:
        return True
    from .ignored_properties import NAMES, PREFIXES
    from .kafka_properties import KAFKA_PROPERTIES

    return name in KAFKA_PROPERTIES or name in NAMES or name.startswith(PREFIXES)


def row_of(name: str) -> Property | None:
    """Return a property's row, if it has an effect."""
    if not name.startswith(_LISTENER_PREFIX):
        return PROPERTIES.get(name)
    return row_of_listener(name)


def _row_without_effect(name: str) -> Property:
    from .kafka_properties import row_of_any

    return row_of_any(name)


def _is_alterable(name: str) -> bool:
    # Dynamic values of listeners have no effect here, except their limits and TLS.
    from .kafka_properties import CLUSTER_WIDE, KAFKA_PROPERTIES, PER_BROKER, base_name

    own = base_name(name)
    known = KAFKA_PROPERTIES.get(own)
    if known is None:
        return False
    is_of_tls = name.startswith(_LISTENER_PREFIX) and own.startswith("ssl.")
    return known.mode == CLUSTER_WIDE or (known.mode == PER_BROKER and is_of_tls)


def _unknown(name: str) -> str:
    known = [*PROPERTIES, *ALIASES]
    return f"{name}: no such property{did_you_mean(name, known, '. `sluice config list` lists them')}"


def _is_loopback(host: str) -> bool:
    if host in ("localhost", "127.0.0.1"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a host name, whose address is not known before its resolution
        return False
