"""Fetch, key 1, versions 0-18: record batches from partitions, by reference, at once or when there are enough.

v0 has no throttle time; v1 is KIP-13's. Up to v1 the client reads magic 0, up to v3 magic 1, from v4 on record batches
and transactions (KIP-98); v7 has fetch sessions (KIP-227), which this broker never opens: it answers session id 0,
which tells the client to send full requests. v10 allows zstd (KIP-110), v13 names topics by id (KIP-516). Follows
Kafka's KafkaApis.handleFetchRequest, ReplicaManager.readFromLog and DelayedFetch.

The way of a fetch: wait for `min_bytes` (long poll) -> read -> charge, or, where a fetch over quota is to be held
before it reads (KIP-13): wait -> charge what the index says -> wait for the throttle time -> read -> correct the
charge.
"""

from collections.abc import Sequence

from sluice.broker.cluster import Partition, Topic
from sluice.broker.context import Outcome, RequestContext
from sluice.broker.log.partition_log import PartitionLog
from sluice.protocol.apis.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.convert import down_convert
from sluice.protocol.records.invalid import InvalidRecords
from sluice.purgatory.operation import DelayedOperation

_TOPIC_IDS_SINCE = 13
_NO_SESSION_EPOCHS = (0, -1)  # 0 asks for a session, -1 for none (FetchMetadata.INITIAL_EPOCH, FINAL_EPOCH)
_READ_COMMITTED = 1
_RECORD_BATCHES_SINCE = 4
_ZSTD = 4  # the codec's number in a batch's attributes
_ZSTD_SINCE = 10
_INT_MAX = 2**31 - 1


def handle(ctx: RequestContext, request: FetchRequest) -> FetchResponse | Outcome:
    """Answers at once if `min_bytes` are there, something is wrong or nobody wants to wait; else waits for more."""
    if request.session_id and request.session_epoch not in _NO_SESSION_EPOCHS:
        ctx.error_code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    fetch = _Fetch(ctx, request)
    if ctx.broker.enforcement.holds_fetch(ctx.version):
        if request.max_wait_ms <= 0 or fetch.is_ready():
            return fetch.finish()
    else:
        # Reading is by reference and costs no more than asking whether there is enough.
        response = fetch.read()
        if request.max_wait_ms <= 0 or fetch.has_read_enough:
            return response
    return ctx.park(_DelayedFetch(ctx, fetch, request.max_wait_ms), ctx.broker.fetches, fetch.partitions())


class _Wanted:
    """One partition that was asked for: where it is led, or why it cannot be read."""

    __slots__ = ("error_code", "partition", "request")

    def __init__(self, request: FetchPartition, partition: Partition | None, error_code: int) -> None:
        self.request = request
        self.partition = partition
        self.error_code = error_code


class _Fetch:
    """A fetch request on its way: what it asks for and under which limits."""

    __slots__ = ("_committed_only", "_ctx", "_max_bytes", "_min_bytes", "_request", "_wanted", "has_read_enough")

    def __init__(self, ctx: RequestContext, request: FetchRequest) -> None:
        broker = ctx.broker
        window = broker.enforcement.largest_fetch(ctx)
        self._max_bytes = min(request.max_bytes, broker.max_fetch_bytes, int(min(window, _INT_MAX)))
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._committed_only = request.isolation_level == _READ_COMMITTED
        self._ctx = ctx
        self._request = request
        self._wanted = [[_wanted(ctx, topic, item) for item in topic.partitions] for topic in request.topics]

    def partitions(self) -> list[Partition]:
        """Those that are led here."""
        return [item.partition for topic in self._wanted for item in topic if item.partition is not None]

    def is_ready(self) -> bool:
        """Whether the answer cannot become better by waiting: enough bytes, an error, or nothing asked for."""
        if not any(self._wanted):  # no topic, or topics without partitions
            return True
        available = 0
        for topic in self._wanted:
            for item in topic:
                partition = item.partition
                if partition is None or item.error_code or partition.deleted:
                    return True
                offset, log = item.request.fetch_offset, partition.log
                if not log.log_start_offset <= offset <= log.log_end_offset:
                    return True
                if available < self._min_bytes:
                    limit = min(item.request.partition_max_bytes, self._max_bytes)
                    available += log.size_available(offset, limit, self._up_to(log), min_one_batch=True)
        return available >= self._min_bytes

    def finish(self) -> FetchResponse | Outcome:
        """Reads and answers; a fetch over quota that is to be held waits first (KIP-13)."""
        enforcement, ctx = self._ctx.broker.enforcement, self._ctx
        if enforcement.holds_fetch(ctx.version):
            return enforcement.charge_before_read(ctx, self.size(), self.read)
        return self.read()

    def size(self) -> int:
        """Record bytes that `read` would return now, from the logs' indexes: nothing is read."""
        left, size = self._max_bytes, 0
        for item in self._readable():
            partition, request = item.partition, item.request
            assert partition is not None
            limit = min(request.partition_max_bytes, left)
            found = partition.log.size_available(request.fetch_offset, limit, self._up_to(partition.log), size == 0)
            left, size = max(0, left - found), size + found
        return size

    def read(self) -> FetchResponse:
        """What is there now, in the order of the request and within its limits; the first batch is always whole."""
        left, nothing_yet = self._max_bytes, True
        ctx = self._ctx
        ctx.error_code = 0
        ctx.fetched = []
        responses = []
        for topic, wanted in zip(self._request.topics, self._wanted, strict=True):
            answers = []
            for item in wanted:
                answer, size = self._read_partition(item, min(item.request.partition_max_bytes, left), nothing_yet)
                answers.append(answer)
                if size:
                    left, nothing_yet = max(0, left - size), False
            responses.append(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=answers))
        read_bytes = sum(size for _, size in ctx.fetched)
        self.has_read_enough = read_bytes >= self._min_bytes or ctx.error_code != 0 or not any(self._wanted)
        return FetchResponse(responses=responses)

    def _read_partition(self, item: _Wanted, max_bytes: int, min_one_batch: bool) -> tuple[PartitionData, int]:
        partition, index = item.partition, item.request.partition
        if partition is None or partition.deleted:
            return self._refused(index, item.error_code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), 0
        if item.error_code:
            return self._refused(index, item.error_code), 0
        log = partition.log
        found = log.read(item.request.fetch_offset, max_bytes, self._up_to(log), min_one_batch)
        if found.error_code:
            return self._refused(index, found.error_code, partition), 0
        answer = PartitionData(
            partition_index=index,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            records=found.parts,
        )
        if self._committed_only:
            aborted = log.aborted_transactions(item.request.fetch_offset, found.next_offset)
            answer.aborted_transactions = [
                AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset) for one in aborted
            ]
        if self._ctx.version < _RECORD_BATCHES_SINCE or (log.holds_zstd and self._ctx.version < _ZSTD_SINCE):
            self._suit_old_client(answer, found.parts, item.request.fetch_offset)
        if found.size:
            self._ctx.fetched.append((partition.topic, found.size))
        return answer, found.size

    def _suit_old_client(self, answer: PartitionData, parts: Sequence[memoryview], offset: int) -> None:
        """Converts batches for clients that know only older formats, or says that it cannot be done."""
        version = self._ctx.version
        batches = [header for part in parts for _, header in iter_batches(part)]
        if any(header.compression == _ZSTD for header in batches):
            code: int = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        elif version >= _RECORD_BATCHES_SINCE:
            return
        else:
            try:
                answer.records = down_convert(b"".join(parts), 1 if version >= 2 else 0, offset)
                return
            except InvalidRecords as invalid:
                code = invalid.code
        self._ctx.error_code = self._ctx.error_code or code
        answer.error_code, answer.records = code, b""

    def _refused(self, index: int, code: int, partition: Partition | None = None) -> PartitionData:
        self._ctx.error_code = self._ctx.error_code or code
        log = partition.log if partition is not None else None
        return PartitionData(
            partition_index=index,
            error_code=code,
            high_watermark=-1 if log is None else log.high_watermark,
            log_start_offset=-1 if log is None else log.log_start_offset,
            aborted_transactions=None,
            records=b"",
        )

    def _readable(self) -> list[_Wanted]:
        return [
            item
            for topic in self._wanted
            for item in topic
            if item.partition is not None and not item.error_code and not item.partition.deleted
        ]

    def _up_to(self, log: PartitionLog) -> int:
        return log.last_stable_offset if self._committed_only else log.high_watermark


def _wanted(ctx: RequestContext, topic_request: FetchTopic, request: FetchPartition) -> _Wanted:
    cluster = ctx.broker.cluster
    topic: Topic | None
    if ctx.version >= _TOPIC_IDS_SINCE:
        topic = cluster.topics_by_id.get(topic_request.topic_id)
        if topic is None:
            return _Wanted(request, None, ErrorCode.UNKNOWN_TOPIC_ID)
    else:
        topic = cluster.topics.get(topic_request.topic)
    partition = topic.partition(request.partition) if topic is not None else None
    if partition is None:
        return _Wanted(request, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return _Wanted(request, partition, partition.epoch_error(request.current_leader_epoch))


class _DelayedFetch(DelayedOperation):
    """A long poll: waits for `min_bytes`, for `max_wait_ms` at most; then answers with whatever is there."""

    __slots__ = ("_ctx", "_fetch")

    def __init__(self, ctx: RequestContext, fetch: _Fetch, max_wait_ms: int) -> None:
        super().__init__(max_wait_ms)
        self._ctx = ctx
        self._fetch = fetch

    def try_complete(self) -> bool:
        return self._fetch.is_ready() and self.force_complete()

    def on_complete(self) -> None:
        self._ctx.broker.dispatcher.complete(self._ctx, self._fetch.finish)
