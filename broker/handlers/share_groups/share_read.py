"""The reading part of ShareFetch: available records of share partitions, acquired for one member."""

from collections.abc import Hashable
from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.coordinator.share.persisted import SharePartitionId
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.metadata.topic import Partition, Traffic
from sluice.broker.requests.context import FetchOutcome, RequestContext
from sluice.broker.share.aborted_records import fetched_batches
from sluice.broker.share.delivery import ACQUIRE_MODES, Acquired, FetchedBatch
from sluice.broker.share.sessions import INITIAL_EPOCH, ShareSession, TopicIdPartition
from sluice.broker.share.share_partition import SharePartition, Status
from sluice.protocol.apis import share_fetch as api
from sluice.protocol.errors import ErrorCode

from .acknowledgements import Leaders, Results, topic_errors


class ShareRead(FetchOutcome):
    def __init__(
        self,
        ctx: RequestContext,
        request: api.ShareFetchRequest,
        broker: Broker,
        session: ShareSession,
        partitions: list[TopicIdPartition],
    ) -> None:
        self._ctx = ctx
        self._request = request
        self._broker = broker
        self._session = session
        self._epoch = session.epoch
        self._group_id = session.key.group_id
        self._committed_only = broker.share_partitions.reads_committed(self._group_id)
        quota_bytes = broker.throttler.largest_fetch(ctx.session.user, ctx.session.client_id)
        self._max_bytes = int(min(request.max_bytes, broker.max_fetch_bytes, quota_bytes))
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._errors = topic_errors(ctx, broker, partitions, session)
        self.is_invalid = len(self._errors) < len(partitions) and request.share_acquire_mode not in ACQUIRE_MODES
        self._shares: dict[TopicIdPartition, tuple[Partition, SharePartition]] = {}
        self._served: list[tuple[Traffic, int]] = []
        if not self._max_bytes or not request.max_records:
            return
        for one in ctx.sliced(partitions):
            if one not in self._errors:
                self._add(one)

    def _add(self, one: TopicIdPartition) -> None:
        shares = self._broker.share_partitions
        key = SharePartitionId(self._group_id, *one)
        share = shares.get_or_load(key, partial(self._errors.__setitem__, one))
        located = shares.partition_of(key)
        if isinstance(share, ErrorCode):
            self._errors[one] = share
        elif located is not None and one not in self._errors:
            self._shares[one] = located, share

    # -- waiting -------------------------------------------------------------------------------------------------------

    def keys(self) -> list[Hashable]:
        keys: list[Hashable] = [SharePartitionId(self._group_id, *one) for one in self._shares]
        return keys + [partition for partition, _ in self._shares.values()]

    def is_ready(self) -> bool:
        if all(one in self._errors for one in self._shares):
            return True
        acquirable = self._acquirable()
        available = 0
        for one, offset in acquirable.items():
            partition, _ = self._shares[one]
            log = partition.log
            end = self._end(log)
            if self._read_error(partition) or not log.log_start_offset <= offset <= end:
                return True
            if offset < end:
                available += log.bytes_between(offset, end, self._max_bytes // len(acquirable))
        return bool(acquirable) and available >= self._min_bytes

    def _acquirable(self) -> dict[TopicIdPartition, int]:
        return {
            one: share.next_fetch_offset()
            for one, (_, share) in self._shares.items()
            if share.status is Status.ACTIVE and one not in self._errors and share.can_acquire()
        }

    def _end(self, log: PartitionLog) -> int:
        return log.last_stable_offset if self._committed_only else log.high_watermark

    def _read_error(self, partition: Partition) -> ErrorCode:
        if partition.deleted:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode(partition.access_error(self._broker.node_id, -1))

    # -- responding ----------------------------------------------------------------------------------------------------

    @property
    def read_bytes(self) -> int:
        return sum(size for _, size in self._served)

    def respond(self, acknowledged: Results) -> api.ShareFetchResponse:
        ctx, session = self._ctx, self._session
        ctx.error_code = 0
        if session.epoch != self._epoch:
            return self._overtaken(0)
        is_first = self._request.share_session_epoch == INITIAL_EPOCH
        reported: dict[TopicIdPartition, api.PartitionData] = ctx.mapping()
        reported.update(
            (one, data)
            for one, data in self._read().items()
            if session.must_report(one, data.error_code, has_records=bool(data.acquired_records)) or is_first
        )
        leaders = Leaders(ctx, self._broker)
        for one, (code, message) in acknowledged.items():
            data = reported.setdefault(one, api.PartitionData(partition_index=one[1], records=b""))
            data.acknowledge_error_code, data.acknowledge_error_message = code, message
        topics: dict[bytes, list[api.PartitionData]] = ctx.mapping()
        for (topic_id, index), data in reported.items():
            ctx.error_code = ctx.error_code or data.error_code or data.acknowledge_error_code
            data.current_leader = api.LeaderIdAndEpoch(*leaders.after(topic_id, index, data.error_code))
            topics.setdefault(topic_id, []).append(data)
        return api.ShareFetchResponse(
            acquisition_lock_timeout_ms=self._lock_timeout_ms(),
            responses=[api.ShareFetchableTopicResponse(topic_id=one, partitions=some) for one, some in topics.items()],
            node_endpoints=list(leaders.endpoints.values()),
        )

    def sent(self) -> bool:
        for traffic, size in self._served:
            traffic.bytes_out += size
        return False

    def throttled(self, throttle_time_ms: int) -> api.ShareFetchResponse:
        self._ctx.error_code = 0
        return self._overtaken(throttle_time_ms)

    def _overtaken(self, throttle_time_ms: int) -> api.ShareFetchResponse:
        """Return a response without partitions, or an error if a later request of the session overtook this one."""
        is_current = self._session.epoch == self._epoch
        code = ErrorCode.NONE if is_current else ErrorCode.INVALID_SHARE_SESSION_EPOCH
        self._ctx.error_code = code
        return api.ShareFetchResponse(
            throttle_time_ms=throttle_time_ms, error_code=code, acquisition_lock_timeout_ms=self._lock_timeout_ms()
        )

    def _lock_timeout_ms(self) -> int:
        return self._broker.share_partitions.settings(self._group_id).record_lock_duration_ms

    def _read(self) -> dict[TopicIdPartition, api.PartitionData]:
        responses: dict[TopicIdPartition, api.PartitionData] = self._ctx.mapping()
        for one, code in self._ctx.array(self._errors.copy().items()):
            responses[one] = api.PartitionData(partition_index=one[1], error_code=code, records=b"")
        acquirable = self._acquirable()
        if not acquirable:
            return responses
        share, rest = divmod(self._max_bytes, len(acquirable))
        remaining, records, is_first = self._max_bytes, self._request.max_records, True
        for one, offset in acquirable.items():
            most = min(share + rest, remaining)
            rest = 0
            data, size, acquired = self._read_partition(one, offset, most, records, min_one_batch=is_first)
            is_first &= not size
            remaining = max(0, remaining - size)
            records -= acquired
            responses[one] = data
        return responses

    def _read_partition(
        self, one: TopicIdPartition, offset: int, most: int, records: int, *, min_one_batch: bool
    ) -> tuple[api.PartitionData, int, int]:
        partition, share = self._shares[one]
        log = partition.log
        data = api.PartitionData(partition_index=one[1], records=b"")
        error = self._read_error(partition)
        found = None if error else log.read(offset, most, self._end(log), min_one_batch)
        if found is not None and found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            share.log_start_moved(log.log_start_offset)
            return data, 0, 0
        if found is None or found.error_code:
            code = error if found is None else ErrorCode(found.error_code)
            data.error_code = code  # without a message, as in Kafka
            return data, 0, 0
        aborted = log.aborted_transactions(offset, found.next_offset) if self._committed_only else []
        batches = fetched_batches(found.parts)
        acquired = share.acquire(
            self._session.key.member_id,
            self._request.share_acquire_mode,
            self._request.batch_size,
            records,
            offset,
            batches,
            aborted,
        )
        if acquired:
            self._fill(data, partition, batches, acquired)
        return data, found.size, sum(last - first + 1 for first, last, _ in acquired)

    def _fill(
        self, data: api.PartitionData, partition: Partition, batches: list[FetchedBatch], acquired: list[Acquired]
    ) -> None:
        first, last = acquired[0].first_offset, acquired[-1].last_offset
        kept = [batch.data for batch in batches if batch.last_offset >= first and batch.base_offset <= last]
        data.records = kept
        data.acquired_records = [api.AcquiredRecords(*one) for one in acquired]
        self._served.append((partition.traffic, sum(map(len, kept))))
