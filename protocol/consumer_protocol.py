"""The subscriptions and assignments of classic groups (Kafka's ConsumerProtocol), bytes in other messages.

Each starts with a version; later versions only add fields.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeVar

from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import decode_prefix
from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, bytes_, int32, string

M = TypeVar("M", bound=Message)

PROTOCOL_TYPE = "consumer"
NEWEST = 3
VERSION_BYTES = 2


class TopicPartitions(Message):
    topic: string = ""
    partitions: list[int32] = []


class Subscription(Message):
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="none")

    topics: list[string] = []
    user_data: Annotated[bytes_ | None, V("0+", null="0+")] = None
    owned_partitions: Annotated[list[TopicPartitions], V("1+")] = []
    generation_id: Annotated[int32, V("2+")] = -1  # when it got the owned partitions
    rack_id: Annotated[string | None, V("3+", null="3+")] = None


class Assignment(Message):
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="none")

    assigned_partitions: list[TopicPartitions] = []
    user_data: Annotated[bytes_ | None, V("0+", null="0+")] = None


def version_of(data: bytes) -> int:
    """Return the version to read; raise RemoteProtocolError without one."""
    version = int.from_bytes(data[:VERSION_BYTES], signed=True)
    if len(data) < VERSION_BYTES or version < 0:
        raise RemoteProtocolError("consumer protocol: missing or negative version")
    return min(version, NEWEST)


def read_embedded(cls: type[M], data: bytes) -> M | None:
    """Return a subscription or an assignment; None if it is malformed."""
    try:
        return decode_prefix(cls, version_of(data))(memoryview(data), VERSION_BYTES, len(data))[0]
    except RemoteProtocolError:
        return None
