"""Dynamic broker configs (KIP-226): per broker, and cluster-wide defaults (the empty name).

Follows Kafka's DynamicBrokerConfig: unknown names and those without effect here are kept and described. Different on
purpose: topics use the first broker's own configs, because the replicas of a partition share one log; a change of
listeners and key stores has no effect.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import copy

from sluice.broker.controller.cluster import Cluster
from sluice.config.broker_config import Config
from sluice.config.described_config import canonical, described
from sluice.config.group_ranges import group_problem
from sluice.config.invalid_value import invalid_value
from sluice.config.kafka_properties import KAFKA_PROPERTIES, PER_BROKER, base_name, row_of_any
from sluice.config.property_table import PROPERTIES
from sluice.config.setting import DYNAMIC_DEFAULT_BROKER_CONFIG, UNKNOWN_TYPE, Setting, Synonym
from sluice.config.value_types import INT_MAX, size, split_list
from sluice.errors import ConfigError
from sluice.protocol.errors import ErrorCode

from .resource import ApiError

# Connection limits; Kafka accepts 0 for these only in its properties file.
_LIMITS_OVER_0 = ("max.connections", "max.connection.creation.rate")
# Thread pools that one alteration may at most double or halve (DynamicThreadPool, DynamicRemoteLogConfig).
_THREADS = (
    *("num.io.threads", "num.network.threads", "num.replica.fetchers", "num.recovery.threads.per.data.dir"),
    *("log.cleaner.threads", "background.threads"),
    *("remote.log.reader.threads", "remote.log.manager.copier.thread.pool.size"),
    *("remote.log.manager.expiration.thread.pool.size", "remote.log.manager.follower.thread.pool.size"),
)
# Dynamic only with the prefix of a listener (DYNAMIC_SECURITY_CONFIGS).
_KEY_STORES = ("ssl.keystore.", "ssl.truststore.", "ssl.key.password")
_LEAST_DEDUPE_BYTES = 2**20  # for each thread
_DEDUPE_BYTES = "log.cleaner.dedupe.buffer.size"
# Texts of Scala, Java and ConfigDef in Kafka's messages.
_REQUIREMENT, _EXCEPTION = "requirement failed: ", "org.apache.kafka.common.config.ConfigException"
_NOT_A_NUMBER = "Not a number"
# Limits of these properties that Kafka checks after the types.
_REQUIREMENTS = {
    "log.roll.ms": "log.roll.ms must be greater than or equal to 1",
    "log.roll.jitter.ms": "log.roll.jitter.ms must be greater than or equal to 0",
    "log.retention.ms": "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    _DEDUPE_BYTES: f"{_DEDUPE_BYTES} must be at least 1MB per cleaner thread.",
}
_MAPS = {"listener.security.protocol.map", "max.connections.per.ip.overrides"}
# Properties files may have smaller segments, for tests.
_DYNAMIC_KINDS = {"log.segment.bytes": size(2**20, INT_MAX)}
_ENDPOINT = re.compile(r".*://\[?[0-9a-zA-Z\-%._:]*\]?:-?[0-9]+")  # as in Kafka
_SAME_AS_WHOLE_LOG = -2
_ALL_BROKERS = ""


class BrokerConfigs:
    """See `ConfigStore`. As in Kafka, a broker alters and describes only itself and the cluster-wide defaults."""

    def __init__(self, node_id: int, config: Config, cluster: Cluster) -> None:
        self._node_id = node_id
        self._config = config
        self._cluster = cluster

    def names(self) -> Iterable[str]:
        return [str(node_id) for node_id in self._cluster.registered]

    def own(self, name: str) -> Mapping[str, str]:
        own = self._cluster.broker_configs.get(name, {})
        return {**self._config.cluster_defaults(), **own} if name == _ALL_BROKERS else own

    def validate_name(self, name: str) -> ApiError | None:
        if name == _ALL_BROKERS:
            return None
        return wrong_node(name, self._node_id, "Node id", "Unexpected broker id, expected {}, but received {}")

    def list_to_change(self, key: str) -> str | None:
        row = row_of_any(key)
        return row.default or "" if row.kind.type == "LIST" else None

    def not_a_list(self, operation: str, key: str) -> str:
        if row_of_any(key).kind.type == UNKNOWN_TYPE:
            return f"Unknown config name: {key}"
        return f"Config value {operation.lower()} is not allowed for config key: {key}"

    def validate(self, name: str, own: Mapping[str, str]) -> ApiError | None:
        if error := validate_configs(own, cluster_wide=name == _ALL_BROKERS):
            return error
        after = copy(self._config)
        problem = _unparsed(own)
        if problem is None:
            after.set_dynamic(own if name else self.own(str(self._node_id)), self.own(_ALL_BROKERS) if name else own)
            problem = _group_problem(after) or _unmet(after)
        if problem is None:
            checks = (self._thread_problem, _limit_problem, _retention_problem, _lag_problem)
            found = next(filter(None, (check(after) for check in checks)), None) or _key_store_problem(after, own)
            if found is not None:
                problem = f"Invalid value {_EXCEPTION}: {found} for configuration Invalid dynamic configuration"
        return None if problem is None else ApiError(ErrorCode.INVALID_REQUEST, problem)

    def _thread_problem(self, after: Config) -> str | None:
        for key in _THREADS:
            old, new = _integer(self._config, key), _integer(after, key)
            if not old // 2 <= new <= old * 2:
                words = "be at least half" if new < old else "not be greater than double"
                message = f"Dynamic thread count update validation failed for {key}={new}, "
                return f"{message}value should {words} the current value {old}"
        return None

    def configure(self, name: str, own: Mapping[str, str]) -> None:
        cluster, defaults = self._cluster, self._config.cluster_defaults()
        if name == _ALL_BROKERS:
            own = {key: value for key, value in own.items() if defaults.get(key) != value}
        cluster.broker_configs[name] = own
        for node_id, broker in cluster.brokers.items():
            broker.config.set_dynamic(self.own(str(node_id)), self.own(_ALL_BROKERS))
            for act in broker.on_configured:
                act()
        for topic in cluster.topics.values():
            cluster.configure(topic, topic.config.own)

    def describe(self, name: str) -> list[Setting] | ApiError:
        if name == _ALL_BROKERS:
            return [_default(key, value) for key, value in self.own(name).items()]
        unexpected = "Unexpected broker id, expected {} or empty string, but received {}"
        wrong = wrong_node(name, self._node_id, "Broker id", unexpected)
        return described(self._config) if wrong is None else wrong


def validate_configs(own: Mapping[str, str], *, cluster_wide: bool) -> ApiError | None:
    of_one_broker = [key for key in own if cluster_wide and _is_per_broker(key)]
    problems = (
        _refused("Cannot update these configs dynamically", [key for key in own if _is_fixed(key)]),
        _refused(
            "These security configs can be dynamically updated only per-listener using the listener prefix",
            [key for key in own if key.startswith(_KEY_STORES)],
        ),
        *(_value_problem(key, value) for key, value in own.items()),
        _refused("Cannot update these configs at default cluster level, broker id must be specified", of_one_broker),
    )
    problem = next(filter(None, problems), None)
    # Kafka uses this error too, although INVALID_CONFIG would fit better (KAFKA-13609).
    return None if problem is None else ApiError(ErrorCode.INVALID_REQUEST, problem)


def _key_store_problem(after: Config, own: Mapping[str, str]) -> str | None:
    """Return why a listener whose TLS configs were altered cannot use its key and trusted certificates."""
    for listener in after.listeners():
        prefix = f"listener.name.{listener.name.lower()}.ssl."
        if not any(key.startswith(prefix) for key in own) or not after.security_protocol(listener.name).endswith("SSL"):
            continue
        from sluice.broker.security.tls.context import server_context  # deferred: ssl takes 15 ms

        config = after.of_listener(listener.name)
        try:
            server_context(config, "none")
        except ConfigError as error:
            store = "truststore" if "ssl.truststore." in str(error) else "keystore"
            return (
                "Validation of dynamic config update of SSLFactory failed: "
                "org.apache.kafka.common.errors.InvalidConfigurationException: "
                f"Failed to load PEM SSL keystore {config.text(f'ssl.{store}.location')}"
            )
    return None


def _group_problem(after: Config) -> str | None:
    if (problem := group_problem(after)) is None:
        return None
    name, accepted = problem
    return f"Invalid value {after.integer(name)} for configuration {name}: expected {accepted}"


def _value_problem(key: str, value: str) -> str | None:
    if base_name(key) in _MAPS:
        return None  # see _unparsed
    if key == "listeners" and not value.strip():
        return "Configuration 'listeners' must not be empty. Valid values include: any non-empty value"
    problem = invalid_value(base_name(key), _DYNAMIC_KINDS.get(key) or row_of_any(key).kind, value)
    is_unmet = problem is not None and key in _REQUIREMENTS and _NOT_A_NUMBER not in problem
    return _REQUIREMENT + _REQUIREMENTS[key] if is_unmet else problem


def _unmet(after: Config) -> str | None:
    """Return what Kafka requires of properties together (KafkaConfig.validateValues)."""
    threads = _integer(after, "log.cleaner.threads")
    if not threads:
        return "/ by zero"
    if after.integer(_DEDUPE_BYTES) // threads <= _LEAST_DEDUPE_BYTES:
        return _REQUIREMENT + _REQUIREMENTS[_DEDUPE_BYTES]
    if not after.integer("max.connections.per.ip") and not after.rates("max.connections.per.ip.overrides"):
        return (
            f"{_REQUIREMENT}max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
            "property is set."
        )
    cordoned = split_list(_text(after, "cordoned.log.dirs"))
    if "*" in cordoned:
        only = "When cordoned.log.dirs is set to *, it must not contain other values"
        return None if cordoned == ("*",) else _REQUIREMENT + only
    missing = [folder for folder in cordoned if folder != after.text("log.dirs")]
    entries = "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
    return _REQUIREMENT + entries + ", ".join(missing) if missing else None


def _unparsed(own: Mapping[str, str]) -> str | None:
    """Return why a map or `listeners` cannot be parsed."""
    for key in _MAPS & own.keys():
        wrong = [item for item in split_list(own[key]) if ":" not in item]
        if wrong:
            return f"Error parsing configuration property '{key}': begin 0, end -1, length {len(wrong[0])}"
        if problem := invalid_value(key, row_of_any(key).kind, own[key]):
            return problem
    items = split_list(own.get("listeners", ""))
    wrong = [item for item in items if not _ENDPOINT.fullmatch(item)]
    created = f"Error creating broker listeners from '[{', '.join(items)}]': "
    return f"{created}Unable to parse {wrong[0]} to a broker endpoint" if wrong else None


def _limit_problem(after: Config) -> str | None:
    zero = [key for key in after.set_names() if base_name(key) in _LIMITS_OVER_0 and _integer(after, key) == 0]
    return f"Invalid {zero[0]} 0" if zero else None


def _lag_problem(after: Config) -> str | None:
    """Return why records would be copied to remote storage later than deleted (DynamicRemoteLogConfig)."""
    for unit in ("ms", "bytes"):
        name, local_name = f"log.remote.copy.lag.{unit}", f"log.local.retention.{unit}"
        lag, local = after.integer(name), after.integer(local_name)
        if local == _SAME_AS_WHOLE_LOG:
            local = after.milliseconds("log.retention.ms") if unit == "ms" else after.integer("log.retention.bytes")
        if 0 < local < lag:
            return (
                f"Invalid value {lag} for configuration {name}: Value must not exceed {local_name} "
                f"(effective value: {local})"
            )
    return None


def _retention_problem(after: Config) -> str | None:
    """Return why the retention of local segments exceeds the whole log's (LogConfig.validateRemoteStorageRetention)."""
    limits = {"ms": after.milliseconds("log.retention.ms"), "bytes": after.integer("log.retention.bytes")}
    for unit, most in limits.items():
        name = f"log.local.retention.{unit}"
        local = _integer(after, name)
        if most < 0 or local == _SAME_AS_WHOLE_LOG or 0 <= local <= most:
            continue
        words = f"be more than log.retention.{unit} property value: {most}"
        if local == -1:
            words = f"be -1 as log.retention.{unit} value is set as {most}."
        return f"Invalid value {local} for configuration {name}: Value must not {words}"
    return None


def _integer(config: Config, key: str) -> int:
    return int(_text(config, key))


def _text(config: Config, key: str) -> str:
    """Return the value of a property that may have no effect."""
    found = config.synonyms(key, KAFKA_PROPERTIES[base_name(key)].row)
    return found[0].value if found else ""


def is_alterable(name: str) -> bool:
    known = KAFKA_PROPERTIES.get(name)
    return known is not None and known.mode != "read-only"


def _refused(reason: str, names: Sequence[str]) -> str | None:
    return f"{reason}: [{', '.join(names)}]" if names else None


def _is_fixed(name: str) -> bool:
    return (name in KAFKA_PROPERTIES or name in PROPERTIES) and not is_alterable(name)


def _is_per_broker(name: str) -> bool:
    known = KAFKA_PROPERTIES.get(base_name(name))
    if base_name(name) != name:
        return known is None or known.row.name not in (*_LIMITS_OVER_0, "num.network.threads")
    return known is not None and known.mode == PER_BROKER


def wrong_node(name: str, node_id: int, field: str, unexpected: str) -> ApiError | None:
    if name == str(node_id):
        return None
    if not name.removeprefix("-").isdecimal():
        return ApiError(ErrorCode.INVALID_REQUEST, f"{field} must be an integer, but it is: {name}")
    return ApiError(ErrorCode.INVALID_REQUEST, unexpected.format(node_id, name))


def _default(key: str, value: str) -> Setting:
    row = row_of_any(key)
    return Setting(row, canonical(row, value), [Synonym(key, value, DYNAMIC_DEFAULT_BROKER_CONFIG)], "")
