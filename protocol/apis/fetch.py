"""Fetch (key 1): reads records from partitions, for consumers and followers.

v0 to v3: message sets of magic 0 and 1; v1: throttle time (KIP-13); v3: limit of the whole response (KIP-74); v4:
transactions (KIP-98); v5: log start offset; v7: sessions (KIP-227); v9: leader epochs (KIP-320); v10: zstd (KIP-110);
v11: racks (KIP-392); v12: divergence (KIP-595); v13: topic ids (KIP-516); v15: tagged replica state (KIP-903); v16: new
leaders (KIP-951); v17: directories (KIP-853); v18: the follower's high watermark (KIP-1166).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, Single, V, int8, int16, int32, int64, records_, string, uuid


class ReplicaState(Message):
    replica_id: Annotated[int32, V("15+")] = -1
    replica_epoch: Annotated[int64, V("15+")] = -1


class FetchPartition(Message):
    partition: Annotated[int32, V(entity="partition")] = 0
    current_leader_epoch: Annotated[int32, V("9+")] = -1  # -1: do not check
    fetch_offset: int64 = 0
    last_fetched_epoch: Annotated[int32, V("12+")] = -1
    log_start_offset: Annotated[int64, V("5+")] = -1
    partition_max_bytes: int32 = 0
    replica_directory_id: Annotated[uuid, V("17+", tag=0)] = ZERO_UUID
    high_watermark: Annotated[int64, V("18+", tag=1)] = 0x7FFF_FFFF_FFFF_FFFF  # largest: unsupported


class FetchTopic(Message):
    topic: Annotated[string, V("0-12", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("13+", entity="topicId")] = ZERO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Message):
    topic: Annotated[string, V("7-12")] = ""
    topic_id: Annotated[uuid, V("13+")] = ZERO_UUID
    partitions: Annotated[list[int32], V("7+")] = []


class FetchRequest(Message):
    """Since version 3, partitions are served in this order."""

    SINGLE: ClassVar[Single] = Single("topics.partitions", empty="forgotten_topics_data rack_id")

    cluster_id: Annotated[string | None, V("12+", null="12+", tag=0)] = None
    replica_id: Annotated[int32, V("0-14")] = -1  # -1: a consumer
    replica_state: Annotated[ReplicaState | None, V("15+", tag=1)] = None
    max_wait_ms: int32 = 0
    min_bytes: int32 = 0
    max_bytes: Annotated[int32, V("3+")] = 0x7FFF_FFFF
    isolation_level: Annotated[int8, V("4+")] = 0  # 0: read uncommitted, 1: read committed
    session_id: Annotated[int32, V("7+")] = 0  # 0: no session yet
    session_epoch: Annotated[int32, V("7+")] = -1  # -1: no session, 0: new session
    topics: list[FetchTopic] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], V("7+")] = []
    rack_id: Annotated[string, V("11+")] = ""


class EpochEndOffset(Message):
    epoch: Annotated[int32, V("12+")] = -1
    end_offset: Annotated[int64, V("12+")] = -1


class LeaderIdAndEpoch(Message):
    leader_id: Annotated[int32, V(leader=True)] = -1
    leader_epoch: int32 = -1


class SnapshotId(Message):
    end_offset: int64 = -1
    epoch: int32 = -1


class AbortedTransaction(Message):
    """This producer's records from this offset up to its marker are aborted."""

    producer_id: Annotated[int64, V("4+")] = 0
    first_offset: Annotated[int64, V("4+")] = 0


class PartitionData(Message):
    partition_index: Annotated[int32, V(entity="partition", answers="partition")] = 0
    error_code: Annotated[
        int16,
        V(
            errors="any moved OFFSET_OUT_OF_RANGE OFFSET_NOT_AVAILABLE UNSUPPORTED_COMPRESSION_TYPE"
            " CORRUPT_MESSAGE UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID UNSUPPORTED_FOR_MESSAGE_FORMAT"
            " INVALID_TOPIC_EXCEPTION OFFSET_MOVED_TO_TIERED_STORAGE"
        ),
    ] = 0
    high_watermark: Annotated[int64, V(on_error=-1)] = 0
    last_stable_offset: Annotated[int64, V("4+")] = -1
    log_start_offset: Annotated[int64, V("5+")] = -1
    diverging_epoch: Annotated[EpochEndOffset | None, V("12+", tag=0)] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, V("12+", tag=1)] = None
    snapshot_id: Annotated[SnapshotId | None, V("12+", tag=2)] = None
    aborted_transactions: Annotated[list[AbortedTransaction] | None, V("4+", null="4+")] = []
    preferred_read_replica: Annotated[int32, V("11+")] = -1  # -1: this broker
    # Before magic 2 the last message may be truncated.
    records: Annotated[records_ | None, V("0+", null="0+", on_error=b"")] = None


class FetchableTopicResponse(Message):
    topic: Annotated[string, V("0-12", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("13+", entity="topicId")] = ZERO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Message):
    node_id: int32 = 0
    host: Annotated[string, V(address="node_id")] = ""
    port: Annotated[int32, V(address="node_id")] = 0
    rack: Annotated[string | None, V("0+", null="0+")] = None


class FetchResponse(Message):
    """In a session, only partitions with changes."""

    SINGLE: ClassVar[Single] = Single("responses.partitions", empty="aborted_transactions")

    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: Annotated[
        int16,
        V(
            "7+",
            errors="FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH FETCH_SESSION_TOPIC_ID_ERROR",
            errors_fall_back=False,
        ),
    ] = 0
    session_id: Annotated[int32, V("7+")] = 0
    responses: Annotated[list[FetchableTopicResponse], V(answers="topics")] = []
    node_endpoints: Annotated[list[NodeEndpoint], V("16+", tag=0)] = []
