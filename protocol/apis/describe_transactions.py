"""DescribeTransactions (key 65): the state of transactions, by transactional id (KIP-664)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, int64, string


class DescribeTransactionsRequest(Message):
    transactional_ids: Annotated[list[string], V(entity="transactionalId")] = []


class TopicData(Message):
    topic: string = ""
    partitions: list[int32] = []


class TransactionState(Message):
    error_code: Annotated[int16, V(errors="any txn_coordinator")] = 0
    transactional_id: Annotated[string, V(entity="transactionalId")] = ""
    transaction_state: string = ""  # `Ongoing`, `PrepareCommit`, ...
    transaction_timeout_ms: int32 = 0
    transaction_start_time_ms: int64 = 0  # -1: not started
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    topics: list[TopicData] = []  # while the transaction ends: only partitions without a marker


class DescribeTransactionsResponse(Message):
    throttle_time_ms: int32 = 0
    transaction_states: Annotated[list[TransactionState], V(answers="transactional_ids")] = []
