"""The consumer: `Consumer`, the types of its calls, and its exceptions."""

from sluice.client.committed_offsets import GroupMetadata, OffsetAndMetadata
from sluice.client.metadata.cluster import TopicPartition

from .consumer import Consumer, NoOffsetForPartitionError
from .fetch.fetcher import OffsetOutOfRangeError
from .fetch.offset_fetcher import LogTruncationError
from .group.consumer_coordinator import RebalanceListener
from .group.offsets import CommitFailedError
from .record import ConsumerRecord, OffsetAndTimestamp
from .subscription_state import NoSubscriptionError

__all__ = [
    "CommitFailedError",
    "Consumer",
    "ConsumerRecord",
    "GroupMetadata",
    "LogTruncationError",
    "NoOffsetForPartitionError",
    "NoSubscriptionError",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
    "RebalanceListener",
    "TopicPartition",
]
