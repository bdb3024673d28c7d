"""DescribeLogDirs (key 35)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, int16, int32, int64, string


class DescribableLogDirTopic(Message):
    """A part of the message."""

    topic: string = ""
    partitions: list[int32] = []


class DescribeLogDirsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 35
    VERSIONS: ClassVar[Versions] = Versions("0-5", flexible="2+")

    topics: Annotated[list[DescribableLogDirTopic] | None, V("0+", null="0+")] = []


class DescribeLogDirsPartition(Message):
    """A part of the message."""

    partition_index: int32 = 0
    partition_size: int64 = 0
    offset_lag: int64 = 0
    is_future_key: boolean = False


class DescribeLogDirsTopic(Message):
    """A part of the message."""

    name: string = ""
    partitions: list[DescribeLogDirsPartition] = []


class DescribeLogDirsResult(Message):
    """A part of the message."""

    error_code: int16 = 0
    log_dir: string = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Annotated[int64, V("4+")] = -1
    usable_bytes: Annotated[int64, V("4+")] = -1
    is_cordoned: Annotated[boolean, V("5+")] = False


class DescribeLogDirsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 35
    VERSIONS: ClassVar[Versions] = Versions("0-5", flexible="2+")

    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V("3+")] = 0
    results: list[DescribeLogDirsResult] = []
