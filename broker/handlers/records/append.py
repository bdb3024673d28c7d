"""The append of the records of a Produce request."""

from collections.abc import Collection, Mapping

from sluice.broker.broker import Broker
from sluice.broker.log.log_results import AppendResult
from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.context import NO_RESPONSE, Outcome, RequestContext
from sluice.broker.requests.worker import respond_after
from sluice.protocol.apis.fetch import LeaderIdAndEpoch, NodeEndpoint
from sluice.protocol.apis.produce import (
    BatchIndexAndErrorMessage,
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
    ctx: RequestContext, broker: Broker, request: ProduceRequest, errors: PartitionErrors, denied: Collection[str]
) -> Message | Outcome:
    """Append the records, but for `denied` topics and partitions with `errors`; with acks=all, wait for replicas."""
    return _Append(ctx, broker, request, errors, denied).begin()


class _Append:
    """The append of a request: short batches first, then those that the worker has validated, then the response."""

    def __init__(
        self,
        ctx: RequestContext,
        broker: Broker,
        request: ProduceRequest,
        errors: PartitionErrors,
        denied: Collection[str],
    ) -> None:
        self._ctx = ctx
        self._broker = broker
        self._request = request
        self._errors = errors
        self._denied = denied
        self._by_id = ctx.version >= _TOPIC_IDS_SINCE
        self._results: list[tuple[TopicProduceData, list[PartitionProduceResponse | _LongAppend]]] = ctx.array()
        self._long: list[_LongAppend] = []
        self._pending: list[PendingPartition[PartitionProduceResponse]] = []
        self._moved: _Moved = {}

    def begin(self) -> Message | Outcome:
        ctx, topic_data = self._ctx, self._request.topic_data
        if len(topic_data) > 1 or (topic_data and len(topic_data[0].partition_data) != 1):
            topic_data = _each_once(ctx, topic_data)
        for data in topic_data:
            self._results.append((data, self._first_pass(data)))
        if not self._long:
            return self._response()
        copied_bytes = sum(len(item.records) for item in self._long)
        worker = self._broker.runtime.worker
        # As in Kafka, a request that was read is appended.
        return respond_after(ctx, worker, self._validated, self._finish, copied_bytes, survives_disconnect=True)

    def _first_pass(self, data: TopicProduceData) -> "list[PartitionProduceResponse | _LongAppend]":
        ctx, metadata, by_id = self._ctx, self._broker.metadata, self._by_id
        topic = metadata.topics_by_id.get(data.topic_id) if by_id else metadata.topics.get(data.name)
        name = data.name if topic is None else topic.name
        results: list[PartitionProduceResponse | _LongAppend] = ctx.array()
        for item in data.partition_data:
            index = item.index
            if name in self._denied:
                results.append(error_result(ctx, index, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif topic is None or not 0 <= index < len(topic.partitions):
                unknown_id = by_id and topic is None
                code = ErrorCode.UNKNOWN_TOPIC_ID if unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                results.append(error_result(ctx, index, code))
            elif (partition := topic.partitions[index]) in self._errors:
                results.append(error_result(ctx, index, *self._errors[partition]))
            else:
                results.append(self._append(partition, item) or self._append_later(partition, item))
        return results

    def _append_later(self, partition: Partition, data: PartitionProduceData) -> "_LongAppend":
        self._long.append(item := _LongAppend(partition, data, self._ctx.now_ms))
        return item

    def _validated(self) -> list[Appendable | InvalidRecords]:
        return [item.validate() for item in self._long]

    def _finish(self, validated: list[Appendable | InvalidRecords]) -> Message | Outcome:
        """Append the long batches, each after its validation."""
        for item, valid in zip(self._long, validated, strict=True):
            if item.partition.deleted:
                item.result = error_result(self._ctx, item.data.index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                item.result = self._append(item.partition, item.data, valid)
        return self._response()

    def _response(self) -> Message | Outcome:
        ctx = self._ctx
        response = ProduceResponse(
            [
                TopicProduceResponse(data.name, data.topic_id, [_result_of(result) for result in results])
                for data, results in self._results
            ]
        )
        if self._moved and ctx.version >= _NAMES_LEADER_SINCE:
            _name_leaders(ctx, self._broker, response, self._moved)
        if self._request.acks == 0:
            return no_acks_outcome(ctx)
        if not self._pending:
            return response
        operation = _DelayedProduce(ctx, self._broker, self._request.timeout_ms, response, self._pending)
        return ctx.park(operation, self._broker.replicas.produces, [item.partition for item in self._pending])

    def _append(
        self, partition: Partition, data: PartitionProduceData, validated: Appendable | InvalidRecords | None = None
    ) -> PartitionProduceResponse | None:
        """Append to one partition; return None if the records have to be validated by the worker."""
        result = self._result(partition, data, validated)
        if result is None:
            return None
        if result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._moved[partition] = result
        log = partition.log
        if self._request.acks == ALL and log.high_watermark < log.log_end_offset and not result.error_code:
            self._pending.append(PendingPartition(partition, log.log_end_offset, result))
        return result

    def _result(
        self, partition: Partition, data: PartitionProduceData, validated: Appendable | InvalidRecords | None
    ) -> PartitionProduceResponse | None:
        ctx, broker, acks = self._ctx, self._broker, self._request.acks
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


class _LongAppend:
    """A batch that takes long to validate."""

    def __init__(self, partition: Partition, data: PartitionProduceData, now_ms: int) -> None:
        self.partition = partition
        # The request's memory is reused while the request is parked.
        self.records = copied = memoryview(bytearray(data.records))  # type: ignore[arg-type]  # as above
        self.data = PartitionProduceData(index=data.index, records=copied)
        self.validate = partition.log.validation(copied, now_ms)
        self.result: PartitionProduceResponse | None = None


def _result_of(result: PartitionProduceResponse | _LongAppend) -> PartitionProduceResponse:
    if isinstance(result, PartitionProduceResponse):
        return result
    assert result.result is not None  # it is appended
    return result.result


def error_response(
    ctx: RequestContext, request: ProduceRequest, code: ErrorCode, message: str | None = None
) -> ProduceResponse | Outcome:
    """Return the response to a request that fails as a whole."""
    responses = [
        TopicProduceResponse(
            name=data.name,
            topic_id=data.topic_id,
            partition_responses=[error_result(ctx, item.index, code, message) for item in data.partition_data],
        )
        for data in _each_once(ctx, request.topic_data)
    ]
    return ProduceResponse(responses=responses) if request.acks else no_acks_outcome(ctx)


def no_acks_outcome(ctx: RequestContext) -> Outcome:
    if ctx.error_code:
        ctx.session.connection.close(f"produce with acks=0 failed: {ErrorCode(ctx.error_code).name}")
    return NO_RESPONSE


def _each_once(ctx: RequestContext, topic_data: list[TopicProduceData]) -> list[TopicProduceData]:
    """Merge repeated topics; of a repeated partition, keep the last records; drop topics without partitions."""
    topics: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = ctx.mapping()
    for topic in topic_data:
        if not topic.partition_data:
            continue
        key = topic.name, topic.topic_id
        partitions = topics.get(key)
        if partitions is None:
            partitions = topics[key] = ctx.mapping()
        for item in topic.partition_data:
            partitions[item.index] = item
    return ctx.array(
        TopicProduceData(name=name, topic_id=topic_id, partition_data=ctx.array(partitions.values()))
        for (name, topic_id), partitions in topics.items()
    )


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
            leaders[leader.node_id] = NodeEndpoint(leader.node_id, at.host, at.port, leader.rack)
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
