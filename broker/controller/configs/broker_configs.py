"""Dynamic broker configs (KIP-226): per broker, and cluster-wide defaults (the empty name).

Follows Kafka's DynamicBrokerConfig: unknown names and those without effect here are kept and described. Different on
purpose: topics use the first broker's own configs, because the replicas of a partition share one log; a change of
listeners and key stores has no effect.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy

from sluice.broker.controller.cluster import Cluster
from sluice.config.broker_config import Config, refused_value
from sluice.config.described_config import canonical, described
from sluice.config.group_ranges import group_problem
from sluice.config.kafka_properties import KAFKA_PROPERTIES, PER_BROKER, base_name, row_of_any
from sluice.config.property_table import PROPERTIES, Property
from sluice.config.setting import (
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    UNKNOWN_TYPE,
    Setting,
    Synonym,
)
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
_SAME_AS_WHOLE_LOG = -2
_ALL_BROKERS = ""


class BrokerConfigs:
    """See `ConfigStore`. As in Kafka, a broker alters and describes only itself and the cluster-wide defaults."""

    def __init__(self, node_id: int, config: Config, cluster: Cluster) -> None:
        self._node_id = node_id
        self._config = config
        self._cluster = cluster

    def names(self) -> Iterable[str]:
        return [str(node_id) for node_id in self._cluster.brokers]

    def own(self, name: str) -> Mapping[str, str]:
        return self._cluster.broker_configs.get(name, {})

    def validate_name(self, name: str) -> ApiError | None:
        if name == _ALL_BROKERS:
            return None
        return wrong_node(name, self._node_id, "Node id", "Unexpected broker id, expected {}, but received {}")

    def list_to_change(self, name: str, key: str) -> str | None:
        row = row_of_any(key)
        return row.default or "" if row.kind.type == "LIST" else None

    def not_a_list(self, operation: str, key: str) -> str:
        if row_of_any(key).kind.type == UNKNOWN_TYPE:
            return f"Unknown config name: {key}"
        return f"Config value {operation.lower()} is not allowed for config key: {key}"

    def validate(self, name: str, own: Mapping[str, str]) -> ApiError | None:
        if problem := validate_configs(own, cluster_wide=name == _ALL_BROKERS):
            return problem
        after = copy(self._config)
        after.set_dynamic(own if name else self.own(str(self._node_id)), self.own(_ALL_BROKERS) if name else own)
        found = (check(after) for check in (self._thread_problem, _group_problem, _cleaner_problem, _retention_problem))
        message = next(filter(None, found), None)
        return None if message is None else ApiError(ErrorCode.INVALID_REQUEST, message)

    def _thread_problem(self, after: Config) -> str | None:
        for key in _THREADS:
            old, new = _integer(self._config, key), _integer(after, key)
            if not old // 2 <= new <= old * 2:
                words = "be at least half" if new < old else "not be greater than double"
                message = f"Dynamic thread count update validation failed for {key}={new}, "
                return f"{message}value should {words} the current value {old}"
        return None

    def configure(self, name: str, own: Mapping[str, str]) -> None:
        cluster = self._cluster
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
        *(refused_value(_typed(key), value) or _limit_problem(key, value) for key, value in own.items()),
        _refused("Cannot update these configs at default cluster level, broker id must be specified", of_one_broker),
    )
    problem = next(filter(None, problems), None)
    # Kafka uses this error too, although INVALID_CONFIG would fit better (KAFKA-13609).
    return None if problem is None else ApiError(ErrorCode.INVALID_REQUEST, problem)


def _group_problem(after: Config) -> str | None:
    if (problem := group_problem(after)) is None:
        return None
    name, accepted = problem
    return f"Invalid value {after.integer(name)} for configuration {name}: expected {accepted}"


def _cleaner_problem(after: Config) -> str | None:
    threads = _integer(after, "log.cleaner.threads")
    if threads and after.integer("log.cleaner.dedupe.buffer.size") // threads > _LEAST_DEDUPE_BYTES:
        return None
    return "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."


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
    """Return the value of a property that may have no effect."""
    return int(config.synonyms(key, KAFKA_PROPERTIES[key].row)[0].value)


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


def _typed(key: str) -> Property:
    row = row_of_any(key)
    return Property(key, row.kind, row.default, row.spec, row.doc)


def _limit_problem(key: str, value: str) -> str | None:
    limits = base_name(key) in _LIMITS_OVER_0
    return f"Invalid {key} {value}" if limits and row_of_any(key).kind.parse(value) == 0 else None


def _default(key: str, value: str) -> Setting:
    row = row_of_any(key)
    return Setting(row, canonical(row, value), [Synonym(key, value, DYNAMIC_DEFAULT_BROKER_CONFIG)], "")
