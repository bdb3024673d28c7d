"""Resource types, and the interface of their config stores."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, Protocol

from sluice.config.setting import (
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_CLIENT_METRICS_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    DYNAMIC_GROUP_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    STATIC_BROKER_CONFIG,
    Setting,
)
from sluice.protocol.errors import ErrorCode

# Kafka's ConfigResource.Type, with the protocol's numbers.
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
KINDS = {
    TOPIC: "topic",
    BROKER: "broker",
    BROKER_LOGGER: "broker logger",
    CLIENT_METRICS: "client metrics",
    GROUP: "group",
}
# Sources of values, with the protocol's numbers (DescribeConfigsResponse.ConfigSource).
CONFIG_SOURCES = {
    DYNAMIC_TOPIC_CONFIG: 1,
    DYNAMIC_BROKER_CONFIG: 2,
    DYNAMIC_DEFAULT_BROKER_CONFIG: 3,
    STATIC_BROKER_CONFIG: 4,
    DEFAULT_CONFIG: 5,
    DYNAMIC_CLIENT_METRICS_CONFIG: 7,
    DYNAMIC_GROUP_CONFIG: 8,
}


class ApiError(NamedTuple):
    code: ErrorCode
    message: str | None


class ConfigStore(Protocol):
    def names(self) -> Iterable[str]: ...

    def own(self, name: str) -> Mapping[str, str]: ...

    def validate_name(self, name: str) -> ApiError | None: ...

    def list_to_change(self, key: str) -> str | None:
        """Return the list to which APPEND and SUBTRACT apply if the key is not set; None if it is not a list."""

    def not_a_list(self, operation: str, key: str) -> str:
        """Return Kafka's message for APPEND or SUBTRACT on a value that is not a list."""

    def validate(self, name: str, own: Mapping[str, str]) -> ApiError | None:
        """Return why a resource cannot have exactly these configs, or None."""

    def configure(self, name: str, own: Mapping[str, str]) -> None: ...

    def describe(self, name: str) -> list[Setting] | ApiError: ...


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    operation: int
    value: str | None
