"""Configs of topics (LogConfig), which apply to open logs at once."""

from collections.abc import Iterable, Mapping

from sluice.broker.controller.cluster import Cluster
from sluice.broker.metadata.topic import invalid_topic_name
from sluice.config.broker_config import refused_topic_configs
from sluice.config.property_table import TOPIC_PROPERTIES
from sluice.config.setting import Setting
from sluice.protocol.errors import ErrorCode

from .resource import ApiError


class TopicConfigs:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def names(self) -> Iterable[str]:
        return self._cluster.topics

    def own(self, name: str) -> Mapping[str, str]:
        topic = self._cluster.topics.get(name)
        return {} if topic is None else topic.config.own

    def validate_name(self, name: str) -> ApiError | None:
        if not name:
            return ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        problem = invalid_topic_name(name)
        return None if problem is None else ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)

    def list_to_change(self, key: str) -> str | None:
        row = TOPIC_PROPERTIES.get(key)
        return None if row is None or row.kind.type != "LIST" else row.default  # not the broker's value, as in Kafka

    def not_a_list(self, operation: str, key: str) -> str:
        return f"Can't {operation} to key {key} because its type is not LIST."

    def validate(self, name: str, own: Mapping[str, str]) -> ApiError | None:
        problem = refused_topic_configs(self._cluster.config, own)
        if problem is not None:
            return ApiError(ErrorCode.INVALID_CONFIG, problem)
        if name not in self._cluster.topics:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        return None

    def configure(self, name: str, own: Mapping[str, str]) -> None:
        self._cluster.configure(self._cluster.topics[name], own)

    def describe(self, name: str) -> list[Setting] | ApiError:
        problem = invalid_topic_name(name)
        if problem is not None:
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        topic = self._cluster.topics.get(name)
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "") if topic is None else topic.config.entries()
