"""Requests to create a topic, and errors about topics."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from sluice.protocol.errors import ErrorCode

# The limit of one request (ReplicationControlManager.MAX_PARTITIONS_PER_BATCH).
MAX_PARTITIONS = 10_000


class TopicError(Struct, frozen=True):
    code: ErrorCode
    message: str | None


# Of all topics of a request with more partitions.
EXCESSIVE_PARTITIONS = TopicError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


class NewTopic(Struct, frozen=True):
    """A topic to be created; -1 partitions or replicas: the broker's default (KIP-464)."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Collection[int]]] = ()  # partition, broker ids; excludes the two numbers above
    configs: Mapping[str, str | None] = {}

    @property
    def own_configs(self) -> dict[str, str]:
        return {name: value for name, value in self.configs.items() if value is not None}
