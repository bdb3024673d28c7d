"""DescribeTransactions (key 65)."""

from __future__ import annotations

from typing import ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import Versions, int16, int32, int64, string


class DescribeTransactionsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 65
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    transactional_ids: list[string] = []


class TopicData(Message):
    """A part of the message."""

    topic: string = ""
    partitions: list[int32] = []


class TransactionState(Message):
    """A part of the message."""

    error_code: int16 = 0
    transactional_id: string = ""
    transaction_state: string = ""
    transaction_timeout_ms: int32 = 0
    transaction_start_time_ms: int64 = 0
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    topics: list[TopicData] = []


class DescribeTransactionsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 65
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    throttle_time_ms: int32 = 0
    transaction_states: list[TransactionState] = []
