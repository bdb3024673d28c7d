"""AlterReplicaLogDirs (key 34)."""

from __future__ import annotations

from typing import ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import Versions, int16, int32, string


class AlterReplicaLogDirTopic(Message):
    """A part of the message."""

    name: string = ""
    partitions: list[int32] = []


class AlterReplicaLogDir(Message):
    """A part of the message."""

    path: string = ""
    topics: list[AlterReplicaLogDirTopic] = []


class AlterReplicaLogDirsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 34
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+")

    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirPartitionResult(Message):
    """A part of the message."""

    partition_index: int32 = 0
    error_code: int16 = 0


class AlterReplicaLogDirTopicResult(Message):
    """A part of the message."""

    topic_name: string = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


class AlterReplicaLogDirsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 34
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+")

    throttle_time_ms: int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
