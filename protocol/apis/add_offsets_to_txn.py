"""AddOffsetsToTxn (key 25): a group's offsets become part of a transaction (KIP-98).

Version 1 changes how it is throttled (KIP-219); 2 may answer PRODUCER_FENCED (KIP-588); 3 is flexible; 4 may answer
TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message):
    """Adds the partition of __consumer_offsets that has the group."""

    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[Versions] = Versions("0-4", flexible="3+")

    transactional_id: Annotated[string, V(entity="transactionalId")] = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    group_id: Annotated[string, V(entity="groupId")] = ""


class AddOffsetsToTxnResponse(Message):
    """Whether TxnOffsetCommit may follow."""

    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[Versions] = Versions("0-4", flexible="3+", client_throttles="1+")

    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any txn_coordinator GROUP_AUTHORIZATION_FAILED INVALID_GROUP_ID")] = 0
