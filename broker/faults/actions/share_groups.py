"""Actions on share groups: lost acquisition locks, redelivered records and failed acknowledgements (KIP-932)."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, cast

import msgspec

from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.matching.values import RuleProblem
from sluice.broker.faults.requests.fault_execution import FaultExecution, Reply, RequestAction, RuleHit
from sluice.broker.requests.context import Outcome
from sluice.protocol.apis import ApiKey
from sluice.protocol.apis.share_acknowledge import (
    AcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from sluice.protocol.apis.share_fetch import FetchPartition, ShareFetchRequest, ShareFetchResponse
from sluice.protocol.entities import name_of
from sluice.protocol.error_response import ResponseItem
from sluice.protocol.errors import ErrorCode

_ACCEPT, _RELEASE = 1, 2


class _AcknowledgementAction(RequestAction, frozen=True):
    def can_hit(self, api_key: int, version: int) -> bool:
        return api_key in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)


class AcquisitionLockLost(_AcknowledgementAction, frozen=True, tag="acquisition-lock-lost"):
    """Lets the acquisition locks of a share group on this broker time out before its request is handled."""

    PROXY_REFUSAL: ClassVar[str] = (
        "the upstream brokers have the acquisition locks. Use acknowledgement-error, which fails as they do"
    )

    def before(self, intercepted: FaultExecution, hit: RuleHit) -> Reply | None:
        group_id = cast("ShareFetchRequest | ShareAcknowledgeRequest", intercepted.request).group_id
        if group_id is not None:
            intercepted.broker.share_partitions.expire_locks(group_id)
        return None


class Redelivery(_AcknowledgementAction, frozen=True, tag="redelivery"):
    """Delivers accepted records of a share group again, as if they had been released."""

    def before(self, intercepted: FaultExecution, hit: RuleHit) -> Reply | None:
        for partition in _acknowledged(intercepted, hit):
            for batch in partition.acknowledgement_batches:
                batch.acknowledge_types = [_RELEASE if one == _ACCEPT else one for one in batch.acknowledge_types]
        return None


class AcknowledgementError(_AcknowledgementAction, frozen=True, tag="acknowledgement-error"):
    """Fails acknowledgements of a share group, which have no effect; a fetch in the same request succeeds."""

    code: Annotated[str, msgspec.Meta(description="error of each matched partition")] = "INVALID_RECORD_STATE"

    def check(self, match: Match) -> None:
        if self.code not in ErrorCode.__members__ or self.code == ErrorCode.NONE.name:
            raise RuleProblem(
                "action.code", f"unknown error code; expected a name as INVALID_RECORD_STATE, got {self.code}"
            )

    def before(self, intercepted: FaultExecution, hit: RuleHit) -> Reply | None:
        for partition in _acknowledged(intercepted, hit):
            for batch in partition.acknowledgement_batches:
                batch.acknowledge_types = []  # invalid: the handler does not apply them
        return None

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        if isinstance(reply, Outcome):
            return reply
        code = ErrorCode[self.code]
        response = cast("ShareFetchResponse | ShareAcknowledgeResponse", reply)
        field = "acknowledge_error" if intercepted.ctx.route.api_key == ApiKey.SHARE_FETCH else "error"
        for topic in response.responses:
            for partition in topic.partitions:
                if getattr(partition, f"{field}_code") == ErrorCode.INVALID_REQUEST and _hits(
                    intercepted, hit, topic.topic_id, partition.partition_index
                ):
                    setattr(partition, f"{field}_code", code)
                    setattr(partition, f"{field}_message", code.message)
                    intercepted.ctx.error_code = code
        return reply


def _acknowledged(intercepted: FaultExecution, hit: RuleHit) -> "Iterator[FetchPartition | AcknowledgePartition]":
    request = cast("ShareFetchRequest | ShareAcknowledgeRequest", intercepted.request)
    for topic in request.topics:
        for partition in topic.partitions:
            if _hits(intercepted, hit, topic.topic_id, partition.partition_index):
                yield partition


def _hits(intercepted: FaultExecution, hit: RuleHit, topic_id: bytes, index: int) -> bool:
    name = name_of(topic_id, intercepted.broker.metadata.topics_by_id)
    return hit.fault.match.hits_part(ResponseItem(name, index))
