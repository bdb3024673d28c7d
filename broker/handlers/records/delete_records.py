"""DeleteRecords, key 21, versions 0-2 (KIP-107): moves the starts of logs, and waits until all replicas followed.

Follows KafkaApis.handleDeleteRecordsRequest, Partition.deleteRecordsOnLeader and DelayedDeleteRecords. Without
simulated replicas (`sluice.replication.delay.ms`) nobody has to be waited for.
"""

from typing import TYPE_CHECKING

from sluice.broker.metadata.topic import INTERNAL_TOPICS, Partition
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from sluice.protocol.errors import ErrorCode
from sluice.purgatory.operation import DelayedOperation

if TYPE_CHECKING:
    from sluice.broker.handlers.services import RecordServices

API = served("DeleteRecords", "0-2")

_HIGH_WATERMARK = -1  # as an offset: all that consumers can read
_NO_LOW_WATERMARK = -1


def handle(
    ctx: RequestContext, request: DeleteRecordsRequest, broker: "RecordServices"
) -> DeleteRecordsResponse | Outcome:
    """The low watermark of each partition, or why its records stay. Of a partition given twice, the last holds."""
    wanted: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for item in topic.partitions:
            wanted.setdefault(topic.name, {})[item.partition_index] = item.offset
    denied = broker.auth.filter_denied(
        ctx, AclOperation.DELETE, ResourceType.TOPIC, [topic.name for topic in request.topics]
    )
    pending: list[_Pending] = []
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=name,
                partitions=[
                    _failed(ctx, index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    if name in denied
                    else _delete(ctx, broker, name, index, offset, pending)
                    for index, offset in offsets.items()
                ],
            )
            for name, offsets in wanted.items()
        ]
    )
    if all(item.is_reached() for item in pending):
        return response
    operation = _DelayedDeleteRecords(ctx, broker, request.timeout_ms, response, pending)
    return ctx.park(operation, broker.delete_records, [item.partition for item in pending])


class _Pending:
    """One partition's part: done once all replicas' logs start at `offset` or later."""

    __slots__ = ("answer", "offset", "partition")

    def __init__(self, partition: Partition, offset: int, answer: DeleteRecordsPartitionResult) -> None:
        self.partition = partition
        self.offset = offset
        self.answer = answer

    def is_reached(self) -> bool:
        return self.partition.low_watermark >= self.offset


def _delete(
    ctx: RequestContext, broker: "RecordServices", name: str, index: int, offset: int, pending: list[_Pending]
) -> DeleteRecordsPartitionResult:
    partition = broker.metadata.partition(name, index)
    if partition is None:
        return _failed(ctx, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if name in INTERNAL_TOPICS:
        return _failed(ctx, index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not broker.leads(partition):
        return _failed(ctx, index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if partition.topic.config.names("cleanup.policy") == ("compact",):
        return _failed(ctx, index, ErrorCode.POLICY_VIOLATION)
    log = partition.log
    if offset == _HIGH_WATERMARK:
        offset = log.high_watermark
    failed = ErrorCode.OFFSET_OUT_OF_RANGE if offset < 0 else log.delete_records_before(offset)
    if failed:
        return _failed(ctx, index, failed)
    broker.records_deleted(partition)
    answer = DeleteRecordsPartitionResult(partition_index=index, low_watermark=partition.low_watermark)
    pending.append(_Pending(partition, offset, answer))
    return answer


def _failed(ctx: RequestContext, index: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    ctx.error_code = ctx.error_code or code
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_LOW_WATERMARK, error_code=code)


class _DelayedDeleteRecords(DelayedOperation):
    """Waits until all replicas have let go, for `timeout_ms` at most; what is deleted stays deleted."""

    __slots__ = ("_broker", "_ctx", "_pending", "_response")

    def __init__(
        self,
        ctx: RequestContext,
        broker: "RecordServices",
        timeout_ms: int,
        response: DeleteRecordsResponse,
        pending: list[_Pending],
    ) -> None:
        super().__init__(timeout_ms)
        self._ctx = ctx
        self._broker = broker
        self._response = response
        self._pending = pending

    def try_complete(self) -> bool:
        self._pending = [item for item in self._pending if not self._is_settled(item)]
        return not self._pending and self.force_complete()

    def on_complete(self) -> None:
        self._ctx.responder.complete(self._ctx, self._answer)

    def _answer(self) -> DeleteRecordsResponse:
        for item in self._pending:  # out of time; the low watermark is told as it was when the request came
            self._fail(item, ErrorCode.REQUEST_TIMED_OUT)
        return self._response

    def _is_settled(self, item: _Pending) -> bool:
        if item.partition.deleted:
            item.answer.low_watermark = _NO_LOW_WATERMARK
            self._fail(item, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return True
        if not self._broker.leads(item.partition):
            self._fail(item, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return True
        if not item.is_reached():
            return False
        item.answer.low_watermark = item.partition.low_watermark
        return True

    def _fail(self, item: _Pending, code: ErrorCode) -> None:
        item.answer.error_code = code
        self._ctx.error_code = self._ctx.error_code or code
