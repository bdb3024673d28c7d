"""What the quotas decide about one response: how long its client is throttled, by which quota, and when to send it."""

from collections.abc import Callable

from msgspec import Struct

from sluice.broker.requests.context import Outcome, RequestContext
from sluice.protocol.message import Message
from sluice.quotas.manager import ClientQuotaManager

# A response that is sent at once, encoded because its size was charged, and that size.
Encoded = tuple[list[bytes | memoryview], int]


class Verdict(Struct, gc=False, frozen=True):
    """The decision about one response, which the exchange carries out.

    Args:
        response: The response to send: that of the handler with its throttle time, or an empty one (KIP-219).
        throttle_ms: How long the connection is muted; 0 if the client is within its quotas.
        by: The quota that throttles, whose `queue_size` counts the connection meanwhile.
        holds: Whether the response is sent after the throttle time (KIP-13) instead of before.
        charges_encoding: Whether the time of the encoding is charged when the response is sent (KIP-124).
        then: Decides again after the throttle time: Kafka up to 1.1 served two throttle times one after the other.
    """

    response: Message | Outcome
    throttle_ms: int = 0
    by: ClientQuotaManager | None = None
    holds: bool = False
    charges_encoding: bool = False
    then: "Callable[[RequestContext], Verdict] | None" = None


class HeldRead(Outcome):
    """The outcome of a Fetch that reads the log after its throttle time (KIP-13)."""

    __slots__ = ("by", "read", "throttle_ms")

    def __init__(self, throttle_ms: int, by: ClientQuotaManager, read: Callable[[], Message | Outcome]) -> None:
        self.throttle_ms = throttle_ms
        self.by = by
        self.read = read
