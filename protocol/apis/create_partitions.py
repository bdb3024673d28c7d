"""CreatePartitions (key 37)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, int16, int32, string


class CreatePartitionsAssignment(Message):
    """A part of the message."""

    broker_ids: list[int32] = []


class CreatePartitionsTopic(Message):
    """A part of the message."""

    name: string = ""
    count: int32 = 0
    assignments: Annotated[list[CreatePartitionsAssignment] | None, V("0+", null="0+")] = []


class CreatePartitionsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 37
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+")

    topics: list[CreatePartitionsTopic] = []
    timeout_ms: int32 = 0
    validate_only: boolean = False


class CreatePartitionsTopicResult(Message):
    """A part of the message."""

    name: string = ""
    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None


class CreatePartitionsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 37
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+")

    throttle_time_ms: int32 = 0
    results: list[CreatePartitionsTopicResult] = []
