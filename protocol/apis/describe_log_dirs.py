"""DescribeLogDirs (key 35): a broker's log directories and the sizes of their replicas (KIP-113).

v3: top-level error (KIP-784); v4: volume sizes (KIP-827); v5: whether a directory accepts new replicas (KIP-1066).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int16, int32, int64, string


class DescribableLogDirTopic(Message):
    topic: Annotated[string, V(entity="topicName")] = ""
    partitions: Annotated[list[int32], V(entity="partition")] = []


class DescribeLogDirsRequest(Message):
    """Sent to the broker in question; null: all topics."""

    topics: Annotated[list[DescribableLogDirTopic] | None, V(null="0+", selects_all="null")] = []


class DescribeLogDirsPartition(Message):
    partition_index: int32 = 0
    partition_size: int64 = 0
    offset_lag: int64 = 0  # behind the high watermark; for a future replica, behind the current one
    is_future_key: boolean = False


class DescribeLogDirsTopic(Message):
    name: string = ""
    partitions: list[DescribeLogDirsPartition] = []


class DescribeLogDirsResult(Message):
    error_code: Annotated[int16, V(errors="any KAFKA_STORAGE_ERROR LOG_DIR_NOT_FOUND")] = 0
    log_dir: Annotated[string, V(map_key=True)] = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Annotated[int64, V("4+")] = -1  # of the volume; -1: unknown
    usable_bytes: Annotated[int64, V("4+")] = -1  # of the volume; -1: unknown
    is_cordoned: Annotated[boolean, V("5+")] = False


class DescribeLogDirsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V("3+", errors="CLUSTER_AUTHORIZATION_FAILED")] = 0
    results: list[DescribeLogDirsResult] = []
