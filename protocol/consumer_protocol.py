"""The subscriptions and assignments of classic groups (Kafka's ConsumerProtocol), bytes in other messages.

Each starts with a version; later versions only add fields.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, bytes_, int32, string

PROTOCOL_TYPE = "consumer"
NEWEST = 3


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
