"""EndTxn (key 26): a transaction is committed or aborted (KIP-98).

Version 1 changes how it is throttled (KIP-219); 2 may answer PRODUCER_FENCED (KIP-588); 3 is flexible; 4 may answer
TRANSACTION_ABORTABLE; with 5 every transaction gets an epoch of its own, which the answer brings (KIP-890).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, int16, int32, int64, string


class EndTxnRequest(Message):
    """Answered when the decision is written, before the markers are."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[Versions] = Versions("0-5", flexible="3+")

    transactional_id: Annotated[string, V(entity="transactionalId")] = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    committed: boolean = False  # False: aborted


class EndTxnResponse(Message):
    """What the producer writes into its batches from now on, from version 5."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[Versions] = Versions("0-5", flexible="3+", client_throttles="1+")

    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any txn_coordinator")] = 0
    producer_id: Annotated[int64, V("5+")] = -1
    producer_epoch: Annotated[int16, V("5+")] = -1
