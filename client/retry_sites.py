"""Where a client tries again, and which backoff it waits there (KIP-580): one table.

Kafka's clients did not convert all that the KIP lists, and converted some that it leaves out: the classes that
rebalance a group are none of its. "Exponential" is `ClientConfig.retry_backoff`; "static" is `retry.backoff.ms`,
always. Who waits counts failures for itself, from 0: batches, calls, lookups each on their own.
"""

from enum import Enum

from .backoff import Backoff, StaticBackoff, Uniform
from .config import ClientConfig


class RetrySite(Enum):
    """A place, and what Kafka waits there, then what the KIP says."""

    PRODUCER_BATCH = "a batch that is sent again", "exponential", "exponential"
    METADATA = "metadata of producers and consumers", "exponential", "exponential"
    TRANSACTIONAL_REQUEST = "InitProducerId and the requests of a transaction", "static", "exponential"
    COORDINATOR_LOOKUP = "FindCoordinator of a consumer", "exponential", "static"
    OFFSET_COMMIT = "commits and committed offsets of a consumer", "exponential", "static"
    TOPIC_METADATA = "what an application asks of topics", "exponential", "exponential"
    HEARTBEAT = "a group member's heartbeats", "exponential", "static"
    JOIN_GROUP = "JoinGroup and SyncGroup", "static", "static"
    AUTO_COMMIT = "commits by time", "static", "static"
    OFFSET_RESET = "ListOffsets and OffsetForLeaderEpoch of a consumer", "static", "exponential"
    ADMIN_CALL = "a call of an admin client", "exponential", "exponential"
    ADMIN_METADATA = "metadata of an admin client", "static", "exponential"

    def __init__(self, what: str, kafka: str, kip: str) -> None:
        self.what = what
        self.by_profile = {"kafka": kafka, "kip": kip}


def backoff_at(site: RetrySite, config: ClientConfig, uniform: Uniform) -> Backoff:
    """What to wait at a place."""
    if site.by_profile[config.profile] == "exponential":
        return config.retry_backoff(uniform)
    return StaticBackoff(config.integer("retry.backoff.ms"))
