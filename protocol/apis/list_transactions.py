"""ListTransactions (key 66): the transactions that a broker coordinates (KIP-664).

v1: filter by duration (KIP-994); v2: filter by a regular expression (KIP-1152).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, int64, string


class ListTransactionsRequest(Message):
    state_filters: list[string] = []  # `Ongoing`, `PrepareCommit`, ...
    producer_id_filters: list[int64] = []
    duration_filter: Annotated[int64, V("1+")] = -1
    transactional_id_pattern: Annotated[string | None, V("2+", null="2+")] = None


class TransactionState(Message):
    transactional_id: string = ""
    producer_id: int64 = 0
    transaction_state: string = ""


class ListTransactionsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any txn_coordinator INVALID_REGULAR_EXPRESSION")] = 0
    unknown_state_filters: list[string] = []
    transaction_states: list[TransactionState] = []
