"""WriteTxnMarkers (key 27): the coordinator sends a transaction's result to its partitions' leaders (KIP-98).

v2: transaction version of the producer (KIP-1228). Sent by brokers, and by admin clients that abort a hanging
transaction (KIP-664).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int8, int16, int32, int64, string


class WritableTxnMarkerTopic(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partition_indexes: Annotated[list[int32], V(entity="partition")] = []


class WritableTxnMarker(Message):
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    transaction_result: boolean = False  # True: committed, False: aborted
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: int32 = 0  # markers with a lower epoch are rejected
    transaction_version: Annotated[int8, V("2+")] = 0  # 2: with KIP-890 part 2; 0 and 1: without


class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = []


class WritableTxnMarkerPartitionResult(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="any moved txn_coordinator CORRUPT_MESSAGE CLUSTER_AUTHORIZATION_FAILED")] = 0


class WritableTxnMarkerTopicResult(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: Annotated[list[WritableTxnMarkerPartitionResult], V(answers="partition_indexes")] = []


class WritableTxnMarkerResult(Message):
    producer_id: Annotated[int64, V(map_key=True)] = 0
    topics: list[WritableTxnMarkerTopicResult] = []


class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = []
