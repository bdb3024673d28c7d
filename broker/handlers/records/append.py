"""The append of the records of a Produce request."""

from collections.abc import Collection, Mapping

from sluice.broker.broker import Broker
from sluice.broker.log.log_results import AppendResult
from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.context import NO_RESPONSE, Outcome, RequestContext
from sluice.broker.requests.worker import respond_after
from sluice.protocol.apis.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.log_validator import Appendable
from sluice.protocol.records.validate import check_produced

from .delayed_partitions import DelayedPartitions, PendingPartition

ALL = -1  # acks: wait for all in-sync replicas
_ACKS = (ALL, 0, 1)
NO_RECORDS = memoryview(b"")
_TOPIC_IDS_SINCE = 13
_NAMES_LEADER_SINCE = 10
# The only client id that may write to internal topics, as in Kafka.
_WRITES_INTERNAL_TOPICS = "__admin_client"
# Error code and message of partitions to which nothing is appended.
PartitionErrors = Mapping[Partition, tuple[ErrorCode, str | None]]
_Moved = dict[Partition, PartitionProduceResponse]  # partitions that this broker does not lead


def append(
    ctx: RequestContext,
    broker: Broker,
    request: ProduceRequest,
    errors: PartitionErrors,
    denied: Collection[str],
) -> Message | Outcome:
    metadata, acks = broker.metadata, request.acks
    by_id = ctx.version >= _TOPIC_IDS_SINCE
    pending: list[PendingPartition[PartitionProduceResponse]] = []
    moved: _Moved = {}
    responses: list[TopicProduceResponse] = []
    long: list[_LongAppend] = []

    def respond(validated: list[Appendable | InvalidRecords]) -> ProduceResponse | Outcome:
        ctx.survives_disconnect = False
        for item, valid in zip(long, validated, strict=True):
            result: PartitionProduceResponse | None
            if item.partition.deleted:
                result = error_result(ctx, item.data.index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                result = _append(ctx, broker, acks, item.partition, item.data, valid)
            assert result is not None
            item.results[item.position] = result
            note(item.partition, result)
        response = ProduceResponse(responses)
        if moved and ctx.version >= _NAMES_LEADER_SINCE:
            _name_leaders(ctx, broker, response, moved)
        if acks == 0:
            return no_acks_outcome(ctx)
        if pending:
            operation = _DelayedProduce(ctx, broker, request.timeout_ms, response, pending)
            return ctx.park(operation, broker.replicas.produces, [item.partition for item in pending])
        return response

    def note(partition: Partition, result: PartitionProduceResponse) -> None:
        if result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            moved[partition] = result
        if acks == ALL and partition.log.high_watermark < partition.log.log_end_offset and not result.error_code:
            pending.append(PendingPartition(partition, partition.log.log_end_offset, result))

    topic_data = request.topic_data
    if len(topic_data) > 1 or (topic_data and len(topic_data[0].partition_data) != 1):
        topic_data = _each_once(ctx, topic_data)
    for data in ctx.sliced(topic_data):
        topic = metadata.topics_by_id.get(data.topic_id) if by_id else metadata.topics.get(data.name)
        name = data.name if topic is None else topic.name
        results = []
        for item in ctx.sliced(data.partition_data):
            index = item.index
            if name in denied:
                results.append(error_result(ctx, index, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                continue
            if topic is None or not 0 <= index < len(topic.partitions):
                unknown_id = by_id and topic is None
                code = ErrorCode.UNKNOWN_TOPIC_ID if unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                results.append(error_result(ctx, index, code))
                continue
            partition = topic.partitions[index]
            if errors and partition in errors:
                results.append(error_result(ctx, index, *errors[partition]))
                continue
            result = _append(ctx, broker, acks, partition, item)
            if result is None:
                long.append(_LongAppend(partition, item, ctx.now_ms, results))
                result = PartitionProduceResponse()
            else:
                note(partition, result)
            results.append(result)
        responses.append(TopicProduceResponse(data.name, data.topic_id, results))
    if not long:
        return respond([])
    ctx.survives_disconnect = True  # as in Kafka, a request that was read is appended
    copied_bytes = sum(len(item.records) for item in long)
    return respond_after(ctx, broker.runtime.worker, lambda: [item.validate() for item in long], respond, copied_bytes)


class _LongAppend:
    def __init__(
        self, partition: Partition, data: PartitionProduceData, now_ms: int, results: list[PartitionProduceResponse]
    ) -> None:
        records: memoryview = data.records  # type: ignore[assignment]  # as below
        self.partition = partition
        # The request's memory is reused while the request is parked.
        self.records = copied = memoryview(bytearray(records))
        self.data = PartitionProduceData(index=data.index, records=copied)
        self.validate = partition.log.validation(copied, now_ms)
        self.results = results
        self.position = len(results)


def error_response(
    ctx: RequestContext, request: ProduceRequest, code: ErrorCode, message: str | None = None
) -> ProduceResponse | Outcome:
    """Return the response to a request that fails as a whole."""
    responses = [
        TopicProduceResponse(
            name=data.name,
            topic_id=data.topic_id,
            partition_responses=[
                error_result(ctx, item.index, code, message) for item in ctx.sliced(data.partition_data)
            ],
        )
        for data in ctx.sliced(_each_once(ctx, request.topic_data))
    ]
    return ProduceResponse(responses=responses) if request.acks else no_acks_outcome(ctx)


def no_acks_outcome(ctx: RequestContext) -> Outcome:
    if ctx.error_code:
        ctx.connection.close(f"produce with acks=0 failed: {ErrorCode(ctx.error_code).name}")
    return NO_RESPONSE


def _each_once(ctx: RequestContext, topic_data: list[TopicProduceData]) -> list[TopicProduceData]:
    """Merge repeated topics; of a repeated partition, keep the last records; drop topics without partitions."""
    topics: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in ctx.sliced(topic_data):
        if not topic.partition_data:
            continue
        partitions = topics.setdefault((topic.name, topic.topic_id), {})
        for item in ctx.sliced(topic.partition_data):
            partitions[item.index] = item
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(partitions.values()))
        for (name, topic_id), partitions in ctx.sliced(topics.items())
    ]


def _append(
    ctx: RequestContext,
    broker: Broker,
    acks: int,
    partition: Partition,
    data: PartitionProduceData,
    validated: Appendable | InvalidRecords | None = None,
) -> PartitionProduceResponse | None:
    records: memoryview = data.records or NO_RECORDS  # type: ignore[assignment]  # the decoder gives no other bytes
    try:
        check_produced(ctx.version, records)
    except InvalidRecords as invalid:
        return error_result(ctx, data.index, invalid.code)  # as in Kafka, without a message
    if acks not in _ACKS:
        return error_result(ctx, data.index, ErrorCode.INVALID_REQUIRED_ACKS)
    topic, log = partition.topic, partition.log
    if topic.is_internal and ctx.session.client_id != _WRITES_INTERNAL_TOPICS:
        return error_result(ctx, data.index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not broker.replicas.leads(partition):
        return error_result(ctx, data.index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if acks == ALL and len(partition.isr) < partition.min_isr:
        return error_result(ctx, data.index, ErrorCode.NOT_ENOUGH_REPLICAS, None, log.log_start_offset)
    if validated is None:
        result = log.append_short(records, ctx.now_ms, partition.leader_epoch)
    else:
        result = log.append_validated(validated, ctx.now_ms, partition.leader_epoch)
    if result is None:
        return None
    return append_response(ctx, broker, partition, data.index, len(records), result)


def append_response(
    ctx: RequestContext, broker: Broker, partition: Partition, index: int, size: int, result: AppendResult
) -> PartitionProduceResponse:
    if result.error_code:
        return _failed(ctx, index, result)
    base_offset = result.base_offset
    if base_offset >= 0 and not result.duplicate:
        traffic = partition.traffic
        traffic.records_in += result.last_offset - base_offset + 1
        traffic.bytes_in += size
        if broker.replicas.fetches.delayed or partition.log.has_followers or partition.follower_fetches:
            broker.replicas.appended(partition)
    # Positional: index, error code, base offset, log append time, log start offset.
    return PartitionProduceResponse(index, 0, base_offset, result.log_append_time_ms, result.log_start_offset)


def _failed(ctx: RequestContext, index: int, result: AppendResult) -> PartitionProduceResponse:
    ctx.error_code = ctx.error_code or result.error_code
    return PartitionProduceResponse(
        index=index,
        error_code=result.error_code,
        base_offset=-1,
        log_start_offset=result.log_start_offset,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=message)
            for number, message in result.record_errors
        ],
        error_message=result.error_message,
    )


def error_result(
    ctx: RequestContext, index: int, code: int, message: str | None = None, log_start_offset: int = -1
) -> PartitionProduceResponse:
    ctx.error_code = ctx.error_code or code
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, log_start_offset=log_start_offset, error_message=message
    )


def _name_leaders(ctx: RequestContext, broker: Broker, response: ProduceResponse, moved: _Moved) -> None:
    leaders: dict[int, NodeEndpoint] = {}
    for partition, result in moved.items():
        known = broker.metadata.leadership(partition)
        if known is None:
            continue
        result.current_leader = LeaderIdAndEpoch(leader_id=known.leader, leader_epoch=known.leader_epoch)
        leader = broker.metadata.leader(known)
        if leader is not None:
            at = ctx.session.endpoint_of(leader)
            leaders[leader.node_id] = NodeEndpoint(node_id=leader.node_id, host=at.host, port=at.port)
    response.node_endpoints = list(leaders.values())


class _DelayedProduce(DelayedPartitions[PartitionProduceResponse]):
    __slots__ = ("_moved",)

    def __init__(
        self,
        ctx: RequestContext,
        broker: Broker,
        timeout_ms: int,
        response: ProduceResponse,
        pending: list[PendingPartition[PartitionProduceResponse]],
    ) -> None:
        super().__init__(ctx, broker, timeout_ms, response, pending)
        self._moved: _Moved = {}

    def _respond(self) -> Message:
        response = super()._respond()
        if self._moved and self._ctx.version >= _NAMES_LEADER_SINCE:
            assert isinstance(response, ProduceResponse)
            _name_leaders(self._ctx, self._broker, response, self._moved)
        return response

    def _is_reached(self, item: PendingPartition[PartitionProduceResponse]) -> bool:
        partition = item.partition
        if partition.leader_epoch != item.leader_epoch and _is_cut(item):
            self._fail(item, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return True
        if partition.log.high_watermark < item.required_offset:
            return False
        if len(partition.isr) < partition.min_isr:
            self._fail(item, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return True

    def _fail(self, item: PendingPartition[PartitionProduceResponse], code: ErrorCode) -> None:
        super()._fail(item, code)
        if code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._moved[item.partition] = item.result


def _is_cut(item: PendingPartition[PartitionProduceResponse]) -> bool:
    """Return whether a later leader has cut the records; a broker that was isolated did not learn of that leader."""
    return item.partition.log.leader_epoch_at(item.required_offset - 1) > item.leader_epoch
