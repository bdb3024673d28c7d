"""All dynamic configs. Follows ConfigurationControlManager and ConfigAdminManager.

An alteration replaces a resource's whole set of configs, or fails as a whole.
"""

from collections.abc import Mapping

from sluice.broker.controller.cluster import Cluster
from sluice.broker.requests.context import Sliced, at_once
from sluice.config.broker_config import MIN_ISR, Config
from sluice.config.config_releases import has_resource
from sluice.protocol.errors import ErrorCode

from .broker_configs import BrokerConfigs
from .loggers import Loggers
from .resource import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    KINDS,
    TOPIC,
    ApiError,
    Change,
    ConfigStore,
    Operation,
)
from .topic_configs import TopicConfigs

_OPERATIONS = frozenset(Operation)
_MAX_VALUE_CHARS = 0x7FFF  # as in Kafka, whose message calls them bytes


class ConfigurationControl:
    def __init__(self, node_id: int, config: Config, cluster: Cluster) -> None:
        self._cluster = cluster
        self.loggers = Loggers(node_id)
        self.groups = cluster.group_configs
        self.client_metrics = cluster.client_metrics_configs
        self._config = config
        self.stores: dict[int, ConfigStore] = {
            TOPIC: TopicConfigs(cluster),
            BROKER: BrokerConfigs(node_id, config, cluster),
            CLIENT_METRICS: self.client_metrics,
            GROUP: self.groups,
        }

    def is_served(self, kind: int) -> bool:
        """Return whether the release has a type of resource."""
        return kind in KINDS and has_resource(self._config.text("sluice.kafka.release"), KINDS[kind])

    def alter(
        self, kind: int, name: str, changes: Mapping[str, Change], *, validate_only: bool, sliced: Sliced = at_once
    ) -> ApiError | None:
        if not self.is_served(kind):
            return _unknown_type(kind)
        if kind == BROKER_LOGGER:
            return self.loggers.alter(name, changes, validate_only=validate_only)
        store = self.stores[kind]
        # Kafka's broker validates the name of a broker, and its controller the other names, after the operations.
        if kind == BROKER and (error := store.validate_name(name)) is not None:
            return error
        unknown = [change.operation for change in sliced(changes.values()) if change.operation not in _OPERATIONS]
        if unknown and kind == BROKER:
            return ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {unknown[0]}")
        if unknown:
            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        while True:
            before = dict(store.own(name))
            own = before.copy()
            for key, change in sliced(changes.items()):
                problem = _change(store, own, key, change)
                if problem is not None:
                    return ApiError(ErrorCode.INVALID_CONFIG, problem)
            if store.own(name) == before:  # else another request altered it between two slices
                return store.validate_name(name) or self._put(kind, store, name, own, validate_only)

    def replace(self, kind: int, name: str, own: Mapping[str, str], *, validate_only: bool) -> ApiError | None:
        store = self.stores.get(kind)
        if store is None or not self.is_served(kind):
            return _unknown_type(kind)
        return store.validate_name(name) or self._put(kind, store, name, own, validate_only)

    def _put(
        self, kind: int, store: ConfigStore, name: str, own: Mapping[str, str], validate_only: bool
    ) -> ApiError | None:
        error = _too_large(own) or store.validate(name, own) or self._elr_problem(kind, name, own)
        if error is not None or validate_only:
            return error
        metadata_log = self._cluster.metadata_log
        if metadata_log is not None and (failed := metadata_log.configured(kind, name, store.own(name), own)):
            return ApiError(failed, None)
        store.configure(name, own)
        return None

    def _elr_problem(self, kind: int, name: str, own: Mapping[str, str]) -> ApiError | None:
        is_default = not name
        if kind != BROKER or not self._config.has_elr() or (MIN_ISR in own) == is_default:
            return None
        problem = (
            f"Cluster-level {MIN_ISR} cannot be removed" if is_default else f"Broker-level {MIN_ISR} cannot be altered"
        )
        return ApiError(ErrorCode.INVALID_CONFIG, f"{problem} while ELR is enabled.")


def _change(store: ConfigStore, own: dict[str, str], key: str, change: Change) -> str | None:
    if change.operation == Operation.DELETE:
        own.pop(key, None)
        return None
    assert change.value is not None  # the caller rejects a null value except for DELETE
    if change.operation == Operation.SET:
        own[key] = change.value
        return None
    start = store.list_to_change(key)
    if start is None:
        return store.not_a_list(Operation(change.operation).name, key)
    items = [item for item in _split(own.get(key, start)) if item]
    for item in _split(change.value):
        if change.operation == Operation.SUBTRACT and item in items:
            items.remove(item)
        elif change.operation == Operation.APPEND and item not in items:
            items.append(item)
    own[key] = ",".join(items)
    return None


def _split(text: str) -> list[str]:
    """Split a list as Java does: without the empty items at its end, but "" is one item."""
    items = text.rstrip(",")
    return items.split(",") if items or not text else []


def _too_large(own: Mapping[str, str]) -> ApiError | None:
    if max(map(len, own.values()), default=0) <= _MAX_VALUE_CHARS:
        return None
    too_large = f"it exceeds the maximum value size of {_MAX_VALUE_CHARS} bytes."
    return ApiError(ErrorCode.INVALID_CONFIG, f"The configuration value cannot be added because {too_large}")


def _unknown_type(kind: int) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
