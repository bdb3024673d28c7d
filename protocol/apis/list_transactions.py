"""ListTransactions (key 66): the transactions that one broker coordinates (KIP-664).

Version 1 can ask for those that have lasted longer than some time (KIP-994); 2 for ids that match a regular expression
(KIP-1152). All versions are flexible.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, int64, string


class ListTransactionsRequest(Message):
    """Empty filters let every transaction through."""

    API_KEY: ClassVar[int] = 66
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="0+")

    state_filters: list[string] = []  # `Ongoing`, `PrepareCommit`, ...
    producer_id_filters: list[int64] = []
    duration_filter: Annotated[int64, V("1+")] = -1  # ms, longer than; below 0: any
    transactional_id_pattern: Annotated[string | None, V("2+", null="2+")] = None


class TransactionState(Message):
    """One transactional id."""

    transactional_id: string = ""
    producer_id: int64 = 0
    transaction_state: string = ""


class ListTransactionsResponse(Message):
    """Those that the asker may describe."""

    API_KEY: ClassVar[int] = 66
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="0+")

    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any txn_coordinator INVALID_REGULAR_EXPRESSION")] = 0
    unknown_state_filters: list[string] = []  # names that are no state
    transaction_states: list[TransactionState] = []
