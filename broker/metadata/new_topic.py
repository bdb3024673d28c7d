"""Requests to create a topic, and why one fails."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sluice.protocol.errors import ErrorCode


class TopicError(NamedTuple):
    """The reason why a topic was not created, deleted or found."""

    code: ErrorCode
    message: str | None  # None: the message of the code


class NewTopic(NamedTuple):
    """A topic to be created. -1 partitions or replicas: the broker's default (KIP-464)."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Collection[int]] = {}  # partition -> broker ids; excludes the two numbers above
    configs: Mapping[str, str | None] = {}

    @property
    def own_configs(self) -> dict[str, str]:
        """The configs that have a value."""
        return {name: value for name, value in self.configs.items() if value is not None}
