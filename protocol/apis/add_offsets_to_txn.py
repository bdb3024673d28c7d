"""AddOffsetsToTxn (key 25): adds a group's offsets to a transaction (KIP-98).

v2: PRODUCER_FENCED (KIP-588); v4: TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message):
    transactional_id: Annotated[string, V(entity="transactionalId")] = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    group_id: Annotated[string, V(entity="groupId")] = ""


class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any txn_coordinator GROUP_AUTHORIZATION_FAILED INVALID_GROUP_ID")] = 0
