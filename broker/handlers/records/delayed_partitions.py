"""The delayed operation of Produce and DeleteRecords, which awaits the replicas of partitions."""

from abc import abstractmethod
from typing import Generic, TypeVar

from sluice.broker.broker import Broker
from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.delayed_request import DelayedRequest
from sluice.protocol.apis.delete_records import DeleteRecordsPartitionResult
from sluice.protocol.apis.produce import PartitionProduceResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

_Result = TypeVar("_Result", bound=PartitionProduceResponse | DeleteRecordsPartitionResult)


class PendingPartition(Generic[_Result]):
    __slots__ = ("leader_epoch", "partition", "required_offset", "result")

    def __init__(self, partition: Partition, required_offset: int, result: _Result) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.required_offset = required_offset
        self.result = result


class DelayedPartitions(DelayedRequest, Generic[_Result]):
    """A wait for all partitions, up to `timeout_ms`; a timeout undoes nothing."""

    __slots__ = ("_broker", "_pending", "_response")

    def __init__(
        self,
        ctx: RequestContext,
        broker: Broker,
        timeout_ms: int,
        response: Message,
        pending: list[PendingPartition[_Result]],
    ) -> None:
        super().__init__(ctx, timeout_ms)
        self._broker = broker
        self._response = response
        self._pending = pending

    def try_complete(self) -> bool:
        self._pending = [item for item in self._pending if not self._is_settled(item)]
        return not self._pending and self.force_complete()

    def _respond(self) -> Message:
        for item in self._pending:
            self._fail(item, ErrorCode.REQUEST_TIMED_OUT)
        return self._response

    def _is_settled(self, item: PendingPartition[_Result]) -> bool:
        if item.partition.deleted:
            self._fail(item, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return True
        if not self._broker.replicas.leads(item.partition):
            self._fail(item, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return True
        return self._is_reached(item)

    @abstractmethod
    def _is_reached(self, item: PendingPartition[_Result]) -> bool: ...

    def _fail(self, item: PendingPartition[_Result], code: ErrorCode) -> None:
        item.result.error_code = code
        self._ctx.error_code = self._ctx.error_code or code
