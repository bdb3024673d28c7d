"""EndTxn (key 26): commits or aborts a transaction (KIP-98).

v2: PRODUCER_FENCED (KIP-588); v4: TRANSACTION_ABORTABLE; v5: a new epoch per transaction, returned in the response
(KIP-890).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int16, int32, int64, string


class EndTxnRequest(Message):
    """The response is sent once the decision is written, before the markers."""

    transactional_id: Annotated[string, V(entity="transactionalId")] = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    committed: boolean = False


class EndTxnResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any txn_coordinator")] = 0
    producer_id: Annotated[int64, V("5+")] = -1
    producer_epoch: Annotated[int16, V("5+")] = -1
