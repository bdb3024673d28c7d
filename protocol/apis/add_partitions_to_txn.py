"""AddPartitionsToTxn (key 24): adds partitions to a transaction (KIP-98).

v2: PRODUCER_FENCED (KIP-588); v4: only between brokers, several transactions and verification; v5:
TRANSACTION_ABORTABLE (KIP-890). Clients use at most 3.
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int16, int32, int64, string


class AddPartitionsToTxnTopic(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: Annotated[list[int32], V(entity="partition")] = []


class AddPartitionsToTxnTransaction(Message):
    transactional_id: Annotated[string, V("4+", entity="transactionalId")] = ""
    producer_id: Annotated[int64, V("4+")] = 0
    producer_epoch: Annotated[int16, V("4+")] = 0
    verify_only: Annotated[boolean, V("4+")] = False
    topics: Annotated[list[AddPartitionsToTxnTopic], V("4+")] = []


class AddPartitionsToTxnRequest(Message):
    transactions: Annotated[list[AddPartitionsToTxnTransaction], V("4+")] = []
    v3_and_below_transactional_id: Annotated[string, V("0-3", entity="transactionalId")] = ""
    v3_and_below_producer_id: Annotated[int64, V("0-3")] = 0
    v3_and_below_producer_epoch: Annotated[int16, V("0-3")] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], V("0-3")] = []


class AddPartitionsToTxnPartitionResult(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    partition_error_code: Annotated[
        int16,
        V(errors="any txn_coordinator TOPIC_AUTHORIZATION_FAILED UNKNOWN_TOPIC_OR_PARTITION OPERATION_NOT_ATTEMPTED"),
    ] = 0


class AddPartitionsToTxnTopicResult(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    results_by_partition: Annotated[list[AddPartitionsToTxnPartitionResult], V(answers="partitions")] = []


class AddPartitionsToTxnResult(Message):
    transactional_id: Annotated[string, V("4+", entity="transactionalId")] = ""
    topic_results: Annotated[list[AddPartitionsToTxnTopicResult], V("4+", answers="topics")] = []


class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V("4+", errors="CLUSTER_AUTHORIZATION_FAILED")] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], V("4+", answers="transactions")] = []
    results_by_topic_v3_and_below: Annotated[
        list[AddPartitionsToTxnTopicResult], V("0-3", answers="v3_and_below_topics")
    ] = []
