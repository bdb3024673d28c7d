"""Dynamic broker configs (KIP-226): per broker, and cluster-wide defaults (the empty name).

Follows Kafka's DynamicBrokerConfig. Different on purpose: Kafka can alter more and stores unknown names; here a name
without effect is rejected. A partition has one log for all replicas, so topics use the first broker's own configs.
"""

from collections.abc import Iterable, Mapping

from sluice.broker.controller.cluster import Cluster
from sluice.config.broker_config import Config, refused_value, row_of
from sluice.config.property_table import PROPERTIES, TOPIC_DEFAULT_OF, Property
from sluice.config.setting import DYNAMIC_DEFAULT_BROKER_CONFIG, Setting, Synonym
from sluice.config.value_types import text_of
from sluice.protocol.errors import ErrorCode

from .resource import ApiError

# Connection limits; Kafka accepts 0 for the first two only in its properties file.
_LIMITS_OVER_0 = frozenset({"max.connections", "max.connection.creation.rate"})
_LIMITS = _LIMITS_OVER_0 | {"max.connections.per.ip", "max.connections.per.ip.overrides"}
ALTERABLE = frozenset({*TOPIC_DEFAULT_OF.values(), *_LIMITS, "producer.id.expiration.ms"})
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
        row = PROPERTIES.get(key)
        return row.default or "" if row is not None and row.kind.type == "LIST" else None

    def not_a_list(self, operation: str, key: str) -> str:
        if key not in PROPERTIES:
            return f"Unknown config name: {key}"
        return f"Config value {operation.lower()} is not allowed for config key: {key}"

    def validate(self, name: str, own: Mapping[str, str]) -> ApiError | None:
        return validate_configs(own)

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
        return self._config.entries() if wrong is None else wrong


def validate_configs(own: Mapping[str, str]) -> ApiError | None:
    fixed = [key for key in own if key not in ALTERABLE and not _is_limit_of_listener(key)]
    if fixed:
        message = (
            f"Cannot update these configs dynamically: [{', '.join(fixed)}]; "
            f"this broker can: {', '.join(sorted(ALTERABLE))}"
        )
        return ApiError(ErrorCode.INVALID_REQUEST, message)
    problems = (refused_value(_row(key), value) or _limit_problem(key, value) for key, value in own.items())
    problem = next(filter(None, problems), None)
    # Kafka uses this error too, although INVALID_CONFIG would fit better (KAFKA-13609).
    return None if problem is None else ApiError(ErrorCode.INVALID_REQUEST, problem)


def wrong_node(name: str, node_id: int, field: str, unexpected: str) -> ApiError | None:
    """Return what is wrong with a broker's name; Kafka's messages differ by request."""
    if name == str(node_id):
        return None
    if not name.removeprefix("-").isdecimal():
        return ApiError(ErrorCode.INVALID_REQUEST, f"{field} must be an integer, but it is: {name}")
    return ApiError(ErrorCode.INVALID_REQUEST, unexpected.format(node_id, name))


def _row(key: str) -> Property:
    row = row_of(key)
    assert row is not None, f"{key} cannot be altered"
    return Property(key, row.kind, row.default, row.spec, row.doc)


def _is_limit_of_listener(key: str) -> bool:
    row = row_of(key)
    return row is not None and row.name != key and row.name in _LIMITS_OVER_0


def _limit_problem(key: str, value: str) -> str | None:
    row = _row(key)
    limits = key.endswith(tuple(_LIMITS_OVER_0))
    return f"Invalid {key} {value}" if limits and row.kind.parse(value) == 0 else None


def _default(key: str, value: str) -> Setting:
    row = _row(key)
    return Setting(row, text_of(row.kind.parse(value)), [Synonym(key, value, DYNAMIC_DEFAULT_BROKER_CONFIG)], "")
