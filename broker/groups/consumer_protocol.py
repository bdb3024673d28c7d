"""What consumers tell each other through a classic group: the coordinator reads the topics and leaves the rest alone
(Kafka's ConsumerProtocol).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.errors import RemoteProtocolError
from sluice.protocol.compile import decode_prefix
from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, bytes_, string

PROTOCOL_TYPE = "consumer"


class ConsumerProtocolSubscription(Message):
    """What all versions of a member's subscription begin with."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    topics: list[string] = []
    user_data: Annotated[bytes_ | None, V("0+", null="0+")] = None


def subscribed_topics(metadata: bytes) -> list[str] | None:
    """The topics in a member's metadata; None where it cannot be read."""
    try:
        # Two bytes of version come first; every version begins as version 0 does.
        subscription, _ = decode_prefix(ConsumerProtocolSubscription, 0)(memoryview(metadata), 2, len(metadata))
    except RemoteProtocolError:
        return None
    return subscription.topics
