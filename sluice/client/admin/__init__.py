"""The admin client: `AdminClient` and the types of its calls."""

from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.metadata.cluster import TopicPartition

from .admin import AdminClient
from .calls import Outcomes
from .configs import Alteration, AlterOperation, ConfigResource, ResourceType
from .partitions import EARLIEST, EARLIEST_LOCAL, LATEST, LATEST_TIERED, MAX_TIMESTAMP
from .quotas import quota_entity
from .topics import NewTopic

__all__ = [
    "EARLIEST",
    "EARLIEST_LOCAL",
    "LATEST",
    "LATEST_TIERED",
    "MAX_TIMESTAMP",
    "AdminClient",
    "AlterOperation",
    "Alteration",
    "ConfigResource",
    "NewTopic",
    "OffsetAndMetadata",
    "Outcomes",
    "ResourceType",
    "TopicPartition",
    "quota_entity",
]
