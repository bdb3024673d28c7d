"""The consumer: `Consumer`, the types of its calls, and its exceptions."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .consumer import CommitFailedError as CommitFailedError
    from .consumer import Consumer as Consumer
    from .consumer import ConsumerRecord as ConsumerRecord
    from .consumer import LogTruncationError as LogTruncationError
    from .consumer import NoOffsetForPartitionError as NoOffsetForPartitionError
    from .consumer import NoSubscriptionError as NoSubscriptionError
    from .consumer import OffsetAndMetadata as OffsetAndMetadata
    from .consumer import OffsetAndTimestamp as OffsetAndTimestamp
    from .consumer import OffsetOutOfRangeError as OffsetOutOfRangeError
    from .consumer import RebalanceListener as RebalanceListener
    from .consumer import TopicPartition as TopicPartition

__all__ = [
    "CommitFailedError",
    "Consumer",
    "ConsumerRecord",
    "LogTruncationError",
    "NoOffsetForPartitionError",
    "NoSubscriptionError",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
    "RebalanceListener",
    "TopicPartition",
]


def __getattr__(name: str) -> object:
    """Import a public name on first use: the other modules of this package are often used without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import consumer

    return getattr(consumer, name)
