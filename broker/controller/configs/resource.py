"""The types of a ConfigResource, and the interface of the store of each type's configs."""

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

# ConfigResource.Type of Kafka, in the numbers of the protocol.
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
# Where a value comes from, in the numbers of the protocol (DescribeConfigsResponse.ConfigSource).
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
    """Why configs are not altered or described, as Kafka's ApiError."""

    code: ErrorCode
    message: str | None  # None: the message of the code


class ConfigStore(Protocol):
    """The configs of all resources of one type."""

    def names(self) -> Iterable[str]:
        """The resources that ListConfigResources tells of."""

    def own(self, name: str) -> Mapping[str, str]:
        """What is set on a resource; nothing on one that is not there."""

    def validate_name(self, name: str) -> ApiError | None:
        """Return what is wrong with a name; the first check of a request."""

    def list_to_change(self, name: str, key: str) -> str | None:
        """The list that APPEND and SUBTRACT start from where the key is not set; None: it is none."""

    def not_a_list(self, operation: str, key: str) -> str:
        """That a value cannot be appended to or subtracted from, in Kafka's words for INVALID_CONFIG."""

    def validate(self, name: str, own: Mapping[str, str]) -> ApiError | None:
        """Return why a resource cannot have exactly these configs, None if it can."""

    def configure(self, name: str, own: Mapping[str, str]) -> None:
        """Set exactly these configs, which `validate` accepts, on a resource; they apply at once."""

    def describe(self, name: str) -> list[Setting] | ApiError:
        """All settings of a resource."""


class Operation(IntEnum):
    """AlterConfigOp.OpType of Kafka (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """What is to become of one config; a DELETE needs no value."""

    operation: int
    value: str | None
