"""One Fetch from its arrival to its response: the partitions to read, the limits, and what was read."""

from collections.abc import Sequence
from functools import partial
from itertools import chain

from msgspec import Struct

from sluice.broker.broker import Broker
from sluice.broker.journal.about import session_subject
from sluice.broker.metadata.topic import Partition
from sluice.broker.replica.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    PartitionRead,
    RequestedPartition,
    TopicKey,
    requested_partitions,
)
from sluice.broker.replica.partition_reader import (
    ISOLATION_LEVELS,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    FailingReader,
    PartitionReader,
)
from sluice.broker.replica.replica_selector import PreferredReplicaReader, select_in_rack
from sluice.broker.requests.context import FetchOutcome, Outcome, RequestContext
from sluice.protocol.apis.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID

from .authorization import deny_unreadable
from .down_conversion import FORMATS_KNOWN_SINCE, is_sent_unchanged, respond_converted

_FULL_EPOCHS = (FINAL_EPOCH, INITIAL_EPOCH)
_KNOWS_STORAGE_ERRORS_SINCE = 6
TOPIC_IDS_SINCE = 13
_RETURNS_LEADER_SINCE = 16
_ANY_REPLICA_SINCE = 11
_LEADER_HAS_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def begin_fetch(ctx: RequestContext, broker: Broker, request: FetchRequest) -> "Fetch | None":
    """Return the fetch of a request; None, with `ctx.error_code`, if its session or its isolation level is unknown."""
    by_id = ctx.version >= TOPIC_IDS_SINCE
    session: FetchSession | None = None
    items: Sequence[RequestedPartition]  # in the order of the response
    if request.session_epoch in _FULL_EPOCHS:
        if request.session_id:
            broker.fetch_sessions.close(request.session_id)
    else:
        resumed = broker.fetch_sessions.resume(ctx, request, by_id)
        if isinstance(resumed, ErrorCode):
            ctx.error_code = resumed
            return None
        if resumed.partitions:
            session = resumed
    items = requested_partitions(ctx, request.topics, by_id) if session is None else [*session.partitions.values()]
    are_known = True
    for item in ctx.sliced(items):
        if item.partition is None or item.partition.deleted:
            item.locate(broker.metadata)
            if item.partition is None:
                are_known = False
    trace = ctx.session.trace
    if session is not None and trace is not None and trace.subject is not None:
        places = ((item.topic_name, item.request.partition, item.request.fetch_offset) for item in ctx.sliced(items))
        trace.subject = session_subject(places, request)
    state = request.replica_state  # of followers, since v15 (KIP-903)
    is_from_follower = (request.replica_id if state is None else state.replica_id) >= 0
    if broker.authorizer is not None and deny_unreadable(ctx, broker, items, for_follower=is_from_follower):
        are_known = False
    known = items
    if not are_known:
        known = ctx.array(item for item in ctx.sliced(items) if item.is_known)
        unknown = ctx.array(item for item in ctx.sliced(items) if not item.is_known)
        if by_id and not is_from_follower:  # Kafka looks all ids up before it checks the names
            unknown = ctx.array(
                item
                for is_first in (True, False)
                for item in unknown
                if (item.error_code == ErrorCode.UNKNOWN_TOPIC_ID) is is_first
            )
        items = ctx.array(chain(known, unknown))
    if known and request.isolation_level not in ISOLATION_LEVELS:
        ctx.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
        return None
    max_bytes, min_bytes = request.max_bytes, request.min_bytes
    if max_bytes > broker.max_fetch_bytes:  # cheaper than a call of `min`
        max_bytes = broker.max_fetch_bytes
    if broker.throttler.quotas.fetch.quotas_enabled and not is_from_follower:
        most = broker.throttler.largest_fetch(ctx.session.user, ctx.session.client_id)
        if most < max_bytes:
            max_bytes = int(most)
    if min_bytes > max_bytes:
        min_bytes = max_bytes
    return Fetch(
        ctx,
        broker,
        session,
        0 if session is None else session.epoch,
        is_from_follower=is_from_follower,
        _opens_session=request.session_epoch == INITIAL_EPOCH,
        _items=items,
        _known=known,
        _reader=_reader(ctx, broker, request, is_from_follower),
        _max_bytes=max_bytes,
        _min_bytes=min_bytes,
    )


def fetch_one(ctx: RequestContext, broker: Broker, request: FetchRequest) -> Message | Outcome | None:
    """Return the response of a fetch for one partition with records, in a session or without one; else None.

    Most fetches are so. Only the choice of the partition is shorter than in `begin_fetch`.
    """
    try:
        (topic,) = request.topics
        (requested,) = topic.partitions
    except ValueError:
        return None
    if (
        request.replica_id >= 0
        or request.replica_state is not None
        or request.forgotten_topics_data
        or ctx.fault is not None
        or broker.authorizer is not None
        or broker.selects_replicas
    ):
        return None
    session_epoch, by_id = request.session_epoch, ctx.version >= TOPIC_IDS_SINCE
    key = topic.topic_id if by_id else topic.topic
    session = None
    if session_epoch == FINAL_EPOCH and not request.session_id:
        item = RequestedPartition(key, requested)
        item.locate(broker.metadata)
    else:
        session = broker.fetch_sessions.find(request.session_id)
        if (
            session is None
            or session.epoch != session_epoch
            or session.uses_topic_ids != by_id
            or len(session.partitions) != 1
            or session.counted != 1  # a long request is changing it
        ):
            return None
        known = session.partitions.get((key, requested.partition))
        if known is None or known.partition is None or known.partition.deleted:
            return None
        item = known
        item.request = requested
    max_bytes = request.max_bytes
    if max_bytes > broker.max_fetch_bytes:  # cheaper than a call of `min`
        max_bytes = broker.max_fetch_bytes
    throttler = broker.throttler
    quotas = throttler.quotas
    counts_bytes = quotas.fetch.quotas_enabled
    has_quotas = counts_bytes or quotas.request is not None
    if has_quotas:
        if throttler.holds_fetch[ctx.version]:
            return None
        if counts_bytes:
            most = throttler.largest_fetch(ctx.session.user, ctx.session.client_id)
            if most < max_bytes:
                max_bytes = int(most)
    most_bytes = requested.partition_max_bytes
    if most_bytes > max_bytes:
        most_bytes = max_bytes
    readers = broker.replicas.readers
    if request.isolation_level == READ_UNCOMMITTED:
        reader = readers.uncommitted
    elif request.isolation_level == READ_COMMITTED:
        reader = readers.committed
    else:
        return None
    data, size = reader.read(item, most_bytes, True)
    if not size or (size < request.min_bytes and size < max_bytes):
        return None
    partition = item.partition
    assert partition is not None  # it was read
    response = FetchResponse(0, 0, request.session_id, [FetchableTopicResponse(topic.topic, topic.topic_id, [data])])
    is_unchanged = ctx.version >= FORMATS_KNOWN_SINCE or is_sent_unchanged(ctx.version, partition.topic)
    epoch = 0
    if session is not None:
        epoch = session.advance()
        if session.last_used_ms != ctx.now_ms:  # else it is one of the last
            broker.fetch_sessions.used(session, ctx.now_ms)
        trace = ctx.session.trace
        if trace is not None and trace.subject is not None:
            place = item.topic_name, requested.partition, requested.fetch_offset
            trace.subject = session_subject((place,), request)
    if not has_quotas and is_unchanged:  # the response is sent for sure
        partition.traffic.bytes_out += size
        if session is not None:
            session.record_sent(item, size, data.high_watermark, data.log_start_offset)
        return response
    read = PartitionRead(item, size, data.high_watermark, data.log_start_offset)
    fetched = Fetched(ctx, broker, session, epoch, response, (read,))
    return fetched if is_unchanged else fetched.converted()


def _reader(ctx: RequestContext, broker: Broker, request: FetchRequest, is_from_follower: bool) -> PartitionReader:
    readers, committed_only = broker.replicas.readers, request.isolation_level == READ_COMMITTED
    if is_from_follower:
        reader = readers.follower
    elif ctx.version < _ANY_REPLICA_SINCE or len(broker.cluster.brokers) == 1:
        reader = readers.committed if committed_only else readers.uncommitted
    else:
        reader = readers.committed_of_any_replica if committed_only else readers.uncommitted_of_any_replica
        if broker.selects_replicas:
            select = partial(select_in_rack, broker.metadata, broker.cluster.replica_end, request.rack_id)
            reader = PreferredReplicaReader(reader, broker.node_id, select)
    if ctx.fault is not None and ctx.fault.fetch_error is not None:
        reader = FailingReader(reader, ctx.fault.fetch_error)
    return reader


class Fetched(Struct, FetchOutcome, eq=False, gc=False):
    """What a fetch has read, until its response is charged and sent."""

    _ctx: RequestContext
    _broker: Broker
    _session: FetchSession | None
    _epoch: int  # of the session; another one later means that a later request overtook this one
    response: FetchResponse = None  # type: ignore[assignment]  # set by a `Fetch` when it has read
    _reads: Sequence[PartitionRead] = ()  # the partitions of the response, in its order

    @property
    def read_bytes(self) -> int:
        return sum(read.size for read in self._reads)

    def converted(self) -> Message | Outcome:
        """Return this after its response is converted for an old client, in the worker if this takes long."""
        return respond_converted(self._ctx, self._broker.runtime.worker, self._reads, self.response, self)

    def sent(self) -> bool:
        session = self._session
        for read in self._reads:
            item = read.item
            if read.size:
                item.partition.traffic.bytes_out += read.size  # type: ignore[union-attr]  # it was read
            if session is not None:
                session.record_sent(item, read.size, read.high_watermark, read.log_start_offset)
        return False

    def throttled(self, throttle_time_ms: int) -> FetchResponse:
        """Return the empty response to a client above its quota, which opens no session."""
        self._ctx.error_code = 0  # errors are not reported either
        response = FetchResponse() if self._session is None else self._empty()
        response.throttle_time_ms = throttle_time_ms
        return response

    def _empty(self) -> FetchResponse:
        session = self._session
        assert session is not None
        code = ErrorCode.NONE if session.epoch == self._epoch else ErrorCode.INVALID_FETCH_SESSION_EPOCH
        self._ctx.error_code = code
        return FetchResponse(session_id=session.id, error_code=code)


class Fetch(Fetched, kw_only=True, gc=True):
    """The partitions of a fetch, its limits, and how it reads."""

    is_from_follower: bool = False
    charged_bytes: int = 0
    _opens_session: bool
    _items: Sequence[RequestedPartition]  # in the order of the response: unknown ones last
    _known: Sequence[RequestedPartition]
    _reader: PartitionReader
    _max_bytes: int
    _min_bytes: int
    has_read_enough: bool = False
    _leaders: dict[int, NodeEndpoint] | None = None

    def partitions(self) -> list[Partition]:
        """Return the partitions whose records the fetch waits for."""
        broker, found = self._broker, [item.partition for item in self._known if item.partition is not None]
        if len(broker.cluster.brokers) > 1:  # it may read from a partition that this broker follows
            fetches = broker.replicas.fetches
            for partition in self._ctx.sliced(found):
                if partition.leader != broker.node_id and fetches not in partition.follower_fetches:
                    partition.follower_fetches += (fetches,)
        return found

    def sent(self) -> bool:
        super().sent()
        if self._session is not None or not self._opens_session:
            return False
        ctx = self._ctx
        self.response.session_id = self._broker.fetch_sessions.open(
            ctx, self._reads, privileged=self.is_from_follower, by_id=ctx.version >= TOPIC_IDS_SINCE
        )
        return self.response.session_id != NO_SESSION

    @property
    def delays_read(self) -> bool:
        return not self.is_from_follower and self._broker.throttler.delays_fetch(self._ctx.version)

    def is_ready(self) -> bool:
        available = 0
        for item in self._ctx.sliced(self._known):
            size = self._reader.bytes_waiting(item)
            if size is None:
                return True
            available += size
        return available >= self._min_bytes or not self._known

    def finish(self) -> Message | Outcome:
        """Return the response, or the read of a throttle that delays it."""
        if not self.delays_read:
            return self._respond(0)
        self.charged_bytes = self.size()
        return self._broker.throttler.charge_before_read(self._ctx, self.charged_bytes, self._respond)

    def _respond(self, throttle_time_ms: int) -> Message | Outcome:
        self.read()
        self.response.throttle_time_ms = throttle_time_ms
        return self if self._ctx.version >= FORMATS_KNOWN_SINCE else self.converted()

    def size(self) -> int:
        remaining, size = self._max_bytes, 0
        for item in self._ctx.sliced(self._known):
            found = self._reader.size(item, min(item.request.partition_max_bytes, remaining), size == 0)
            remaining, size = max(0, remaining - found), size + found
        return size

    def read(self) -> None:
        """Read available records in order, within the limits; in a session, only those of changed partitions."""
        ctx, session, reader = self._ctx, self._session, self._reader
        ctx.error_code = 0
        reads: list[PartitionRead] = ctx.array()
        self._reads = reads
        if session is not None and session.epoch != self._epoch:
            # A later request of the session has overtaken this one.
            self.has_read_enough = True
            self.response = self._empty()
            return
        self.has_read_enough = not self._known
        remaining, read_bytes = self._max_bytes, 0
        responses: list[FetchableTopicResponse] = []
        topic: TopicKey | None = None
        for item in ctx.sliced(self._items):
            if session is not None and reader.is_unchanged(item):
                continue
            most = item.request.partition_max_bytes
            if most > remaining:
                most = remaining
            data, size = reader.read(item, most, not read_bytes)
            if size:
                read_bytes += size
                remaining = remaining - size if size < remaining else 0
            elif data.error_code or data.diverging_epoch is not None:
                self._record_failure(item, data)
            elif data.preferred_read_replica >= 0:
                self.has_read_enough = True
            if session is not None and not (size or item.is_changed_by(data)):
                continue
            reads.append(PartitionRead(item, size, data.high_watermark, data.log_start_offset))
            if item.topic == topic:
                responses[-1].partitions.append(data)
            else:
                topic = item.topic
                responses.append(
                    FetchableTopicResponse(topic, ZERO_UUID, [data])
                    if isinstance(topic, str)
                    else FetchableTopicResponse("", topic, [data])
                )
        if read_bytes >= self._min_bytes:
            self.has_read_enough = True
        response = FetchResponse(0, 0, 0 if session is None else session.id, responses)
        if self._leaders is not None:
            response.node_endpoints, self._leaders = list(self._leaders.values()), None
        self.response = response

    def _record_failure(self, item: RequestedPartition, data: PartitionData) -> None:
        ctx = self._ctx
        if item.is_known:
            self.has_read_enough = True
        if data.error_code == ErrorCode.KAFKA_STORAGE_ERROR and ctx.version < _KNOWS_STORAGE_ERRORS_SINCE:
            data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        ctx.error_code = ctx.error_code or data.error_code
        if data.error_code in _LEADER_HAS_MOVED and ctx.version >= _RETURNS_LEADER_SINCE and item.partition is not None:
            self._add_leader(item.partition, data)

    def _add_leader(self, partition: Partition, data: PartitionData) -> None:
        broker = self._broker
        known = broker.metadata.leadership(partition)
        if known is None:
            return
        data.current_leader = LeaderIdAndEpoch(leader_id=known.leader, leader_epoch=known.leader_epoch)
        leader = broker.metadata.leader(known)
        if leader is not None and not self.is_from_follower:
            at = self._ctx.session.endpoint_of(leader)
            if self._leaders is None:
                self._leaders = {}
            self._leaders[leader.node_id] = NodeEndpoint(
                node_id=leader.node_id, host=at.host, port=at.port, rack=leader.rack
            )
