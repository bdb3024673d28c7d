"""InitProducerId (key 22): assigns id and epoch to an idempotent or transactional producer (KIP-98).

v3: the producer's current id and epoch (KIP-360); v4 and v5: error codes (KIP-588, KIP-890); v6: unstable in Kafka 4.4,
two-phase commit (KIP-939).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int16, int32, int64, string


class InitProducerIdRequest(Message):
    """Idempotent producers have no transactional id."""

    transactional_id: Annotated[string | None, V(null="0+", entity="transactionalId")] = ""
    transaction_timeout_ms: int32 = 0
    producer_id: Annotated[int64, V("3+")] = -1
    producer_epoch: Annotated[int16, V("3+")] = -1
    enable2_pc: Annotated[boolean, V("6+")] = False
    keep_prepared_txn: Annotated[boolean, V("6+")] = False


class InitProducerIdResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[
        int16, V(errors="any txn_coordinator CLUSTER_AUTHORIZATION_FAILED INVALID_TRANSACTION_TIMEOUT")
    ] = 0
    producer_id: int64 = -1
    producer_epoch: Annotated[int16, V(on_error=-1)] = 0
    ongoing_txn_producer_id: Annotated[int64, V("6+")] = -1
    ongoing_txn_producer_epoch: Annotated[int16, V("6+")] = -1
