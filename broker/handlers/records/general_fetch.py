"""The general path of Fetch: all partitions, sessions, quotas, followers, old clients and fault rules."""

from collections.abc import Collection

from sluice.broker.broker import Broker
from sluice.broker.journal.about import partitions_subject
from sluice.broker.metadata.topic import Partition, Topic, Traffic
from sluice.broker.replica.failing_reader import FailingReader
from sluice.broker.replica.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    RequestedPartition,
    ResponsePartition,
    TopicKey,
    requested_partitions,
)
from sluice.broker.replica.follower_reader import any_replica_reader
from sluice.broker.replica.partition_reader import PartitionReader, readers_of
from sluice.broker.replica.replica_selector import PreferredReplicaReader, select_in_rack
from sluice.broker.requests.context import Outcome, RequestContext
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

from .authorization import deny_unreadable
from .down_conversion import respond_converted
from .single_partition_fetch import FORMATS_KNOWN_SINCE, READ_COMMITTED

OldFormat = tuple[PartitionData, Topic, int]
_TOPIC_IDS_SINCE = 13
_RETURNS_LEADER_SINCE = 16
_ANY_REPLICA_SINCE = 11
_LEADER_HAS_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def begin_fetch(ctx: RequestContext, broker: Broker, request: FetchRequest) -> "Fetch | None":
    epoch = request.session_epoch
    by_id = ctx.version >= _TOPIC_IDS_SINCE
    if epoch in (FINAL_EPOCH, INITIAL_EPOCH):
        if request.session_id:
            broker.fetch_sessions.close(request.session_id)
        requested = requested_partitions(ctx, request.topics, broker.metadata, by_id)
        return Fetch(ctx, broker, request, requested.values(), opens_session=epoch == INITIAL_EPOCH)
    session = broker.fetch_sessions.resume(ctx, request, by_id, broker.metadata)
    if isinstance(session, ErrorCode):
        ctx.error_code = session
        return None
    if not session.partitions:
        requested = requested_partitions(ctx, request.topics, broker.metadata, by_id)
        return Fetch(ctx, broker, request, requested.values(), opens_session=False)
    # Another connection may change the session between two slices.
    items: Collection[RequestedPartition] = (
        session.partitions.values() if ctx.long is None else [*session.partitions.values()]
    )
    for item in ctx.sliced(items):
        if item.partition is None or item.partition.deleted:
            item.locate(broker.metadata)
    if ctx.subject is not None:
        ctx.subject = partitions_subject((item.topic_name, item.request.partition) for item in ctx.sliced(items))
    return Fetch(ctx, broker, request, items, opens_session=False, session=session)


class Fetch:
    __slots__ = (
        "_broker",
        "_ctx",
        "_epoch",
        "_follows",
        "_items",
        "_known",
        "_leaders",
        "_max_bytes",
        "_min_bytes",
        "_old_formats",
        "_opens_session",
        "_reader",
        "_reported",
        "_session",
        "charged_bytes",
        "fetched",
        "has_read_enough",
        "is_from_follower",
    )

    def __init__(
        self,
        ctx: RequestContext,
        broker: Broker,
        request: FetchRequest,
        requested: Collection[RequestedPartition],
        *,
        opens_session: bool,
        session: FetchSession | None = None,
        max_bytes: int | None = None,
    ) -> None:
        # Without `max_bytes`, the request, the broker and the quota define the limit.
        self._ctx = ctx
        self._broker = broker
        self._session = session
        # A different epoch later means that another request of the session overtook this one.
        self._epoch = 0 if session is None else session.epoch
        self._opens_session = opens_session
        self._follows = False  # whether it may read partitions that this broker follows
        state = request.replica_state  # of followers, since v15 (KIP-903)
        self.is_from_follower = (request.replica_id if state is None else state.replica_id) >= 0
        readers = readers_of(broker.node_id)
        if self.is_from_follower:
            self._reader = readers.follower
        else:
            self._reader = readers.committed if request.isolation_level == READ_COMMITTED else readers.uncommitted
            if ctx.version >= _ANY_REPLICA_SINCE and len(broker.cluster.brokers) > 1:
                self._reader = self._reader_of_any_replica(request)
        if ctx.fault is not None and ctx.fault.fetch_error is not None:
            self._reader = FailingReader(self._reader, ctx.fault.fetch_error)
        if max_bytes is None:
            max_bytes = min(request.max_bytes, broker.max_fetch_bytes)
            if not self.is_from_follower:
                most = broker.throttler.largest_fetch(ctx)
                if most < max_bytes:
                    max_bytes = int(most)
        self._max_bytes = max_bytes
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        if broker.authorizer is not None:
            deny_unreadable(ctx, broker, requested, for_follower=self.is_from_follower)
        self._known = [item for item in ctx.sliced(requested) if item.partition is not None]
        self._items = self._known if len(self._known) == len(requested) else self._in_order(requested)
        self._reported: list[ResponsePartition] | None = None
        self.fetched: list[tuple[Traffic, int]] = []
        self.has_read_enough = False
        self.charged_bytes = 0
        self._leaders: dict[int, NodeEndpoint] = {}
        self._old_formats: list[OldFormat] = []  # of the read data, for an old client

    def _reader_of_any_replica(self, request: FetchRequest) -> PartitionReader:
        broker = self._broker
        committed_only = request.isolation_level == READ_COMMITTED
        self._follows = True
        reader: PartitionReader = any_replica_reader(broker.node_id, committed_only=committed_only)
        if broker.selects_replicas:

            def select(partition: Partition, fetch_offset: int) -> int | None:
                return select_in_rack(
                    broker.metadata, broker.cluster.replica_end, partition, request.rack_id, fetch_offset
                )

            reader = PreferredReplicaReader(reader, broker.node_id, select)
        return reader

    @property
    def delays_read(self) -> bool:
        return not self.is_from_follower and self._broker.throttler.holds_fetch(self._ctx.version)

    @property
    def read_bytes(self) -> int:
        return sum(size for _, size in self.fetched)

    def partitions(self) -> list[Partition]:
        found = [item.partition for item in self._known if item.partition is not None]
        if self._follows:
            fetches = self._broker.replicas.fetches
            for partition in self._ctx.sliced(found):
                if partition.leader != self._broker.node_id and fetches not in partition.follower_fetches:
                    partition.follower_fetches += (fetches,)
        return found

    def is_at_end(self) -> bool:
        known = self._known
        if not known or known is not self._items or self._min_bytes <= 0:
            return False
        return all(map(self._reader.is_at_end, self._ctx.sliced(known)))

    def is_ready(self) -> bool:
        available = 0
        for item in self._ctx.sliced(self._known):
            size = self._reader.bytes_waiting(item)
            if size is None:
                return True
            available += size
        return available >= self._min_bytes or not self._known

    def finish(self) -> Message | Outcome:
        if not self.delays_read:
            return self._respond(0)
        self.charged_bytes = self.size()
        return self._broker.throttler.charge_before_read(self._ctx, self.charged_bytes, self._respond)

    def _respond(self, throttle_time_ms: int) -> Message | Outcome:
        response = self.read()
        response.throttle_time_ms = throttle_time_ms
        return self.converted(response)

    def size(self) -> int:
        remaining, size = self._max_bytes, 0
        for item in self._ctx.sliced(self._known):
            found = self._reader.size(item, min(item.request.partition_max_bytes, remaining), size == 0)
            remaining, size = max(0, remaining - found), size + found
        return size

    def read(self) -> FetchResponse:
        """Read available records in order, within the limits; in a session, return only changed partitions."""
        ctx, session = self._ctx, self._session
        ctx.error_code = 0
        self.fetched = []
        self.has_read_enough = not self._known
        self._leaders = {}
        self._old_formats = []
        self._reported = [] if self._opens_session or session is not None else None
        if session is not None and session.epoch != self._epoch:
            return self._overtaken()
        response = FetchResponse(responses=self._read_partitions(self._reported))
        if session is not None:
            response.session_id = session.id
        if self._leaders:
            response.node_endpoints = list(self._leaders.values())
        return response

    def _read_partitions(self, reported: list[ResponsePartition] | None) -> list[FetchableTopicResponse]:
        session, reader, for_old_client = self._session, self._reader, self._ctx.version < FORMATS_KNOWN_SINCE
        remaining, read_bytes = self._max_bytes, 0
        responses: list[FetchableTopicResponse] = []
        topic: TopicKey | None = None
        topic_partitions: list[PartitionData] = []
        for item in self._ctx.sliced(self._items):
            if session is not None and reader.is_unchanged(item):
                continue
            data, size = reader.read(item, min(item.request.partition_max_bytes, remaining), read_bytes == 0)
            if size and item.partition is not None:
                read_bytes += size
                remaining = max(0, remaining - size)
                self.fetched.append((item.partition.traffic, size))
            elif data.error_code or data.diverging_epoch is not None:
                self._record_failure(item, data)
            elif data.preferred_read_replica >= 0:
                self.has_read_enough = True
            if reported is not None:
                if session is not None and not (size or item.is_changed_by(data)):
                    continue
                reported.append(ResponsePartition(item, data.high_watermark, data.log_start_offset, size > 0))
            if for_old_client and not data.error_code and item.partition is not None:
                self._old_formats.append((data, item.partition.topic, item.request.fetch_offset))
            if item.topic != topic:
                topic, topic_partitions = item.topic, []
                responses.append(_topic_response(topic, topic_partitions))
            topic_partitions.append(data)
        if read_bytes >= self._min_bytes:
            self.has_read_enough = True
        return responses

    def converted(self, response: FetchResponse) -> Message | Outcome:
        """Return the response in the client's formats, converted in the worker if this takes long."""
        if not self._old_formats:
            return response
        return respond_converted(self._ctx, self._broker.runtime.worker, self._old_formats, response)

    def sent(self, response: Message) -> bool:
        for traffic, size in self._ctx.sliced(self.fetched):
            traffic.bytes_out += size
        if self._reported is None:
            return False
        if self._session is not None:
            self._session.record_sent(self._ctx.sliced(self._reported))
            return False
        assert isinstance(response, FetchResponse)
        ctx = self._ctx
        response.session_id = self._broker.fetch_sessions.open(
            ctx, self._reported, privileged=self.is_from_follower, by_id=ctx.version >= _TOPIC_IDS_SINCE
        )
        return response.session_id != NO_SESSION

    def throttled(self, throttle_time_ms: int) -> FetchResponse:
        """Return the empty response to a client above its quota, which opens no session."""
        self._ctx.error_code = 0  # errors are not reported either
        response = FetchResponse() if self._session is None else self._empty()
        response.throttle_time_ms = throttle_time_ms
        return response

    def _in_order(self, requested: Collection[RequestedPartition]) -> list[RequestedPartition]:
        self._known = [item for item in self._ctx.sliced(requested) if item.is_known]
        return self._known + [item for item in self._ctx.sliced(requested) if not item.is_known]

    def _overtaken(self) -> FetchResponse:
        """Return a response for a request that a later one of the session has overtaken."""
        self.has_read_enough = True
        return self._empty()

    def _empty(self) -> FetchResponse:
        session = self._session
        assert session is not None
        code = ErrorCode.NONE if session.epoch == self._epoch else ErrorCode.INVALID_FETCH_SESSION_EPOCH
        self._ctx.error_code = code
        return FetchResponse(session_id=session.id, error_code=code)

    def _record_failure(self, item: RequestedPartition, data: PartitionData) -> None:
        ctx = self._ctx
        if item.is_known:
            self.has_read_enough = True
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
        if leader is not None:
            at = self._ctx.session.endpoint_of(leader)
            self._leaders[leader.node_id] = NodeEndpoint(
                node_id=leader.node_id, host=at.host, port=at.port, rack=leader.rack
            )


def _topic_response(topic: TopicKey, topic_partitions: list[PartitionData]) -> FetchableTopicResponse:
    if isinstance(topic, str):
        return FetchableTopicResponse(topic=topic, partitions=topic_partitions)
    return FetchableTopicResponse(topic_id=topic, partitions=topic_partitions)
