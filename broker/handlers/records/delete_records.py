"""DeleteRecords, key 21, versions 0-2 (KIP-107).

Follows KafkaApis.handleDeleteRecordsRequest, Partition.deleteRecordsOnLeader and DelayedDeleteRecords.
"""

from sluice.broker.broker import Broker
from sluice.broker.metadata.topic import INTERNAL_TOPICS
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import delete_records as api
from sluice.protocol.errors import ErrorCode

from .delayed_partitions import DelayedPartitions, PendingPartition

API = served("DeleteRecords", "0-2")

_HIGH_WATERMARK = -1  # the offset that deletes all readable records
_NO_LOW_WATERMARK = -1

_Pending = PendingPartition[api.DeleteRecordsPartitionResult]


def handle(
    ctx: RequestContext, request: api.DeleteRecordsRequest, broker: Broker
) -> api.DeleteRecordsResponse | Outcome:
    requested: dict[str, dict[int, int]] = ctx.mapping()
    for topic in request.topics:
        if not topic.partitions:
            continue
        offsets = requested.get(topic.name)
        if offsets is None:
            offsets = requested[topic.name] = ctx.mapping()
        for item in topic.partitions:
            offsets[item.partition_index] = item.offset
    denied = broker.auth.filter_denied(
        ctx, AclOperation.DELETE, ResourceType.TOPIC, [topic.name for topic in request.topics]
    )
    pending: list[_Pending] = []
    response = api.DeleteRecordsResponse(
        topics=[
            api.DeleteRecordsTopicResult(
                name=name,
                partitions=[
                    _failed(ctx, index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    if name in denied
                    else _delete(ctx, broker, name, index, offset, pending)
                    for index, offset in offsets.items()
                ],
            )
            for name, offsets in requested.items()
        ]
    )
    if all(map(_is_deleted, pending)):
        return response
    operation = _DelayedDeleteRecords(ctx, broker, request.timeout_ms, response, pending)
    return ctx.park(operation, broker.replicas.delete_records, [item.partition for item in pending])


def _delete(
    ctx: RequestContext, broker: Broker, name: str, index: int, offset: int, pending: list[_Pending]
) -> api.DeleteRecordsPartitionResult:
    partition = broker.metadata.partition(name, index)
    if partition is None:
        return _failed(ctx, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if name in INTERNAL_TOPICS:
        return _failed(ctx, index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not broker.replicas.leads(partition):
        return _failed(ctx, index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if partition.topic.config.names("cleanup.policy") == ("compact",):
        return _failed(ctx, index, ErrorCode.POLICY_VIOLATION)
    log = partition.log
    if offset == _HIGH_WATERMARK:
        offset = log.high_watermark
    failed = ErrorCode.OFFSET_OUT_OF_RANGE if offset < 0 else log.delete_records_before(offset)
    if failed:
        return _failed(ctx, index, failed)
    broker.replicas.records_deleted(partition)
    result = api.DeleteRecordsPartitionResult(partition_index=index, low_watermark=partition.low_watermark)
    pending.append(PendingPartition(partition, offset, result))
    return result


def _failed(ctx: RequestContext, index: int, code: ErrorCode) -> api.DeleteRecordsPartitionResult:
    ctx.error_code = ctx.error_code or code
    return api.DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_LOW_WATERMARK, error_code=code)


class _DelayedDeleteRecords(DelayedPartitions[api.DeleteRecordsPartitionResult]):
    __slots__ = ()

    def _is_reached(self, item: _Pending) -> bool:
        if not _is_deleted(item):
            return False
        item.result.low_watermark = item.partition.low_watermark
        return True

    def _fail(self, item: _Pending, code: ErrorCode) -> None:
        super()._fail(item, code)
        if code != ErrorCode.REQUEST_TIMED_OUT:
            item.result.low_watermark = _NO_LOW_WATERMARK


def _is_deleted(item: _Pending) -> bool:
    return item.partition.low_watermark >= item.required_offset
