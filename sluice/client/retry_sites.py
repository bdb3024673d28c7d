"""The operations that a client retries, and the backoff of each (KIP-580).

Kafka's clients did not convert all operations of the KIP, and converted others, such as heartbeats.
"exponential" is `ClientConfig.retry_backoff`; "static" is a constant `retry.backoff.ms`.
"""

from enum import Enum

from .backoff import Backoff, StaticBackoff, Uniform
from .config import ClientConfig


class RetrySite(Enum):
    """A retried operation: description, backoff in Kafka, backoff in the KIP."""

    PRODUCER_BATCH = "a produced batch", "exponential", "exponential"
    METADATA = "metadata of producers and consumers", "exponential", "exponential"
    TRANSACTIONAL_REQUEST = "InitProducerId and the requests of a transaction", "static", "exponential"
    COORDINATOR_LOOKUP = "FindCoordinator of a consumer", "exponential", "static"
    OFFSET_COMMIT = "commits and committed offsets of a consumer", "exponential", "static"
    HEARTBEAT = "a group member's heartbeats", "exponential", "static"
    JOIN_GROUP = "JoinGroup and SyncGroup", "static", "static"
    AUTO_COMMIT = "automatic commits", "static", "static"
    OFFSET_RESET = "ListOffsets and OffsetForLeaderEpoch of a consumer", "static", "exponential"
    ADMIN_CALL = "a call of an admin client", "exponential", "exponential"
    ADMIN_METADATA = "metadata of an admin client", "static", "exponential"

    def __init__(self, description: str, kafka: str, kip: str) -> None:
        self.description = description
        self.by_profile = {"kafka": kafka, "kip": kip}


def backoff_at(site: RetrySite, config: ClientConfig, uniform: Uniform) -> Backoff:
    if site.by_profile[config.profile] == "exponential":
        return config.retry_backoff(uniform)
    return StaticBackoff(config.integer("retry.backoff.ms"))
