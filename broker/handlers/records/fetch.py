"""Fetch, key 1, versions 0-18: record batches from partitions, by reference, at once or when there are enough.

v0 has no throttle time; v1 is KIP-13's. Up to v1 the client reads magic 0, up to v3 magic 1, from v4 on record batches
and transactions (KIP-98); v7 has sessions (KIP-227, see `broker/replica/fetch_session.py`), v9 leader epochs (KIP-320),
v12 tells of diverging ones (KIP-595), v13 names topics by id (KIP-516), v16 names the leader (KIP-951). Follows Kafka's
KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages and readFromLog, and DelayedFetch. Different on purpose: up
to v2 Kafka cuts the first batch, too, where the limit ends; such clients get it whole here, as later ones do.

The way of a fetch: wait for `min_bytes` (long poll) -> read -> charge, or, where a fetch over quota is to be held
before it reads (KIP-13): wait -> charge what the index says -> wait for the throttle time -> read -> correct the
charge. Only then it is known whether the data go out, and the session is told (`Fetch.sent`).
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from sluice.broker.journal.about import partitions_subject
from sluice.broker.log.log_results import LogRead
from sluice.broker.metadata.topic import Partition, Traffic
from sluice.broker.replica.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    Told,
    TopicKey,
    WantedPartition,
    wanted_partitions,
)
from sluice.broker.replica.partition_reader import readers_of
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import Charge, served
from sluice.protocol.apis.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from sluice.protocol.errors import ErrorCode
from sluice.purgatory.operation import DelayedOperation

from .single_partition_fetch import FORMATS_KNOWN_SINCE, READ_COMMITTED, find, tell, waits_at_end, wanted_by

if TYPE_CHECKING:
    from sluice.broker.handlers.services import RecordServices

API = served("Fetch", "0-18", charge=Charge.FETCH_BYTES)

_TOPIC_IDS_SINCE = 13
_NAMES_LEADER_SINCE = 16
_INT_MAX = 2**31 - 1
_LEADER_HAS_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def handle(ctx: RequestContext, request: FetchRequest, broker: "RecordServices") -> FetchResponse | Outcome:
    """Answers at once if `min_bytes` are there, something is wrong or nobody wants to wait; else waits for more."""
    partition = wanted_by(ctx, broker, request)
    if partition is not None:
        found = find(ctx, broker, request, partition)
        if found is not None:
            return tell(request, partition, found)
        if waits_at_end(ctx, broker, request, partition):
            return ctx.park_for_more(
                _DelayedFetchOfOne(ctx, broker, request, partition), broker.replicas.fetches, (partition,)
            )
    return _handle_any(ctx, broker, request)


def _handle_any(ctx: RequestContext, broker: "RecordServices", request: FetchRequest) -> FetchResponse | Outcome:
    fetch = ctx.fetch = _begin(ctx, broker, request)
    if fetch is None:
        return FetchResponse(error_code=ctx.error_code)
    if request.max_wait_ms > 0 and fetch.is_at_end():
        operation = _DelayedFetch(ctx, fetch, request.max_wait_ms)
        return ctx.park_for_more(operation, broker.replicas.fetches, fetch.partitions())
    if fetch.is_held:
        if request.max_wait_ms <= 0 or fetch.is_ready():
            return fetch.finish()
    else:
        # Reading is by reference and costs no more than asking whether there is enough.
        response = fetch.read()
        if request.max_wait_ms <= 0 or fetch.has_read_enough:
            return response
    return ctx.park(_DelayedFetch(ctx, fetch, request.max_wait_ms), broker.replicas.fetches, fetch.partitions())


def _begin(ctx: RequestContext, broker: "RecordServices", request: FetchRequest) -> "Fetch | None":
    """What the request asks for, by itself or as a part of its session; None, and `ctx.error_code`, if that fails."""
    epoch = request.session_epoch
    by_id = ctx.version >= _TOPIC_IDS_SINCE
    if epoch in (FINAL_EPOCH, INITIAL_EPOCH):
        if request.session_id:
            broker.fetch_sessions.close(request.session_id)
        wanted = wanted_partitions(request.topics, broker.metadata, by_id)
        return Fetch(ctx, broker, request, wanted.values(), opens_session=epoch == INITIAL_EPOCH)
    session = broker.fetch_sessions.resume(request, by_id, ctx.now_ms, broker.metadata)
    if isinstance(session, ErrorCode):
        ctx.error_code = session
        return None
    if not session.partitions:
        wanted = wanted_partitions(request.topics, broker.metadata, by_id)
        return Fetch(ctx, broker, request, wanted.values(), opens_session=False)
    for item in session.partitions.values():
        if item.partition is None or item.partition.deleted:
            item.locate(broker.metadata)
    if ctx.subject is not None:
        ctx.subject = partitions_subject((item.topic_name, key[1]) for key, item in session.partitions.items())
    return Fetch(ctx, broker, request, session.partitions.values(), opens_session=False, session=session)


class Fetch:
    """A fetch request on its way: what it asks for and under which limits."""

    __slots__ = (
        "_broker",
        "_ctx",
        "_epoch",
        "_items",
        "_known",
        "_leaders",
        "_max_bytes",
        "_min_bytes",
        "_opens_session",
        "_reader",
        "_session",
        "_told",
        "fetched",
        "has_read_enough",
        "is_from_follower",
    )

    def __init__(
        self,
        ctx: RequestContext,
        broker: "RecordServices",
        request: FetchRequest,
        wanted: Collection[WantedPartition],
        *,
        opens_session: bool,
        session: FetchSession | None = None,
        max_bytes: int | None = None,
    ) -> None:
        """Without `max_bytes`, the limit is the smallest of the request's, the broker's and that of the quota."""
        self._ctx = ctx
        self._broker = broker
        self._session = session
        self._epoch = 0 if session is None else session.epoch  # unless it changes, no other request came in between
        self._opens_session = opens_session
        state = request.replica_state  # of a follower, since v15 (KIP-903)
        self.is_from_follower = (request.replica_id if state is None else state.replica_id) >= 0
        readers = readers_of(broker.node_id)
        if self.is_from_follower:
            self._reader = readers.follower
        else:
            self._reader = readers.committed if request.isolation_level == READ_COMMITTED else readers.uncommitted
        if ctx.fault is not None and ctx.fault.fetch_error is not None:
            from sluice.broker.replica.failing_reader import FailingReader  # only if a fault rule fails fetches

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
            from .authorization import deny_unreadable  # most brokers never need it

            deny_unreadable(ctx, broker, wanted, for_follower=self.is_from_follower)
        self._known = [item for item in wanted if item.partition is not None]
        self._items = self._known if len(self._known) == len(wanted) else self._in_order(wanted)
        self._told: list[Told] | None = None
        self.fetched: list[tuple[Traffic, int]] = []  # record bytes that were read of each partition
        self.has_read_enough = False
        self._leaders: dict[int, NodeEndpoint] = {}  # those that the answer names, by node id

    @property
    def is_held(self) -> bool:
        """Whether it is held before it reads, when it is over quota (KIP-13)."""
        return not self.is_from_follower and self._broker.throttler.holds_fetch(self._ctx.version)

    @property
    def read_bytes(self) -> int:
        """The record bytes that were read."""
        return sum(size for _, size in self.fetched)

    def partitions(self) -> list[Partition]:
        """Those that are led here."""
        return [item.partition for item in self._known if item.partition is not None]

    def is_at_end(self) -> bool:
        """Whether nothing is there yet, and nothing wrong: what consumers find most of the time."""
        known = self._known
        if not known or known is not self._items or self._min_bytes <= 0:
            return False
        return all(map(self._reader.is_at_end, known))

    def is_ready(self) -> bool:
        """Whether the answer cannot become better by waiting: enough bytes, an error, or nothing asked for."""
        available = 0
        for item in self._known:
            size = self._reader.bytes_waiting(item)
            if size is None:
                return True
            available += size
        return available >= self._min_bytes or not self._known

    def finish(self) -> FetchResponse | Outcome:
        """Reads and answers; a fetch over quota that is to be held waits first (KIP-13)."""
        if self.is_held:
            ctx = self._ctx
            return self._broker.throttler.charge_before_read(ctx, self.size(), self.read)
        return self.read()

    def size(self) -> int:
        """Record bytes that `read` would return now, from the logs' indexes: nothing is read."""
        left, size = self._max_bytes, 0
        for item in self._known:
            found = self._reader.size(item, min(item.request.partition_max_bytes, left), size == 0)
            left, size = max(0, left - found), size + found
        return size

    def read(self) -> FetchResponse:
        """What is there now, in order and within the limits; the first batch is always whole.

        Of a session, the partitions with something new; the session itself stays as it is until the answer is sent.
        """
        ctx, session = self._ctx, self._session
        ctx.error_code = 0
        self.fetched = []
        self.has_read_enough = not self._known
        self._leaders = {}
        self._told = [] if self._opens_session or session is not None else None
        if session is not None and session.epoch != self._epoch:
            return self._overtaken()
        response = FetchResponse(responses=self._read_partitions(self._told))
        if session is not None:
            response.session_id = session.id
        if self._leaders:
            response.node_endpoints = list(self._leaders.values())
        return response

    def _read_partitions(self, told: list[Told] | None) -> list[FetchableTopicResponse]:
        """Partitions one after the other; those of a topic together where they follow each other."""
        session, reader, for_old_client = self._session, self._reader, self._ctx.version < FORMATS_KNOWN_SINCE
        left, read_bytes = self._max_bytes, 0
        responses: list[FetchableTopicResponse] = []
        topic: TopicKey | None = None
        answers: list[PartitionData] = []
        for item in self._items:
            if session is not None and reader.is_as_told(item):
                continue
            data, size = reader.read(item, min(item.request.partition_max_bytes, left), read_bytes == 0)
            if size and item.partition is not None:
                read_bytes += size
                left = max(0, left - size)
                self.fetched.append((item.partition.traffic, size))
            elif data.error_code or data.diverging_epoch is not None:
                self._note_failure(item, data)
            if told is not None:
                if session is not None and not (size or item.would_be_news(data)):
                    continue
                told.append(Told(item, data.high_watermark, data.log_start_offset, size > 0))
            if for_old_client and not data.error_code:
                self._suit_old_client(item, data)
            if item.topic != topic:
                topic, answers = item.topic, []
                responses.append(_topic_response(topic, answers))
            answers.append(data)
        if read_bytes >= self._min_bytes:
            self.has_read_enough = True
        return responses

    def sent(self, response: FetchResponse) -> bool:
        """Says that what was read goes out; returns whether `response` has changed: it tells of a new session."""
        for traffic, size in self.fetched:
            traffic.bytes_out += size
        if self._told is None:
            return False
        if self._session is not None:
            self._session.told(self._told)
            return False
        ctx = self._ctx
        response.session_id = self._broker.fetch_sessions.open(
            self._told, ctx.now_ms, privileged=self.is_from_follower, by_id=ctx.version >= _TOPIC_IDS_SINCE
        )
        return response.session_id != NO_SESSION

    def throttled(self, throttle_time_ms: int) -> FetchResponse:
        """The answer instead of what was read, for a client that is over quota: it opens no session, and keeps one."""
        self._ctx.error_code = 0  # what failed is not told either
        response = FetchResponse() if self._session is None else self._empty()
        response.throttle_time_ms = throttle_time_ms
        return response

    def _in_order(self, wanted: Collection[WantedPartition]) -> list[WantedPartition]:
        """As Kafka orders them: what is not there at all comes last, and is no reason to answer a long poll."""
        self._known = [item for item in wanted if item.is_known]
        return self._known + [item for item in wanted if not item.is_known]

    def _overtaken(self) -> FetchResponse:
        """The answer to a request after which another one of its session came, as when a client sends it again."""
        self.has_read_enough = True
        return self._empty()

    def _empty(self) -> FetchResponse:
        """An answer without partitions that belongs to the session."""
        session = self._session
        assert session is not None
        code = ErrorCode.NONE if session.epoch == self._epoch else ErrorCode.INVALID_FETCH_SESSION_EPOCH
        self._ctx.error_code = code
        return FetchResponse(session_id=session.id, error_code=code)

    def _suit_old_client(self, item: WantedPartition, data: PartitionData) -> None:
        from .down_conversion import suit_old_client  # with the first client that needs it

        assert item.partition is not None
        suit_old_client(data, self._ctx.version, item.partition.topic, item.request.fetch_offset)
        self._ctx.error_code = self._ctx.error_code or data.error_code

    def _note_failure(self, item: WantedPartition, data: PartitionData) -> None:
        """A partition that cannot be read ends a long poll; the client may be told who leads it."""
        ctx = self._ctx
        if item.is_known:
            self.has_read_enough = True
        ctx.error_code = ctx.error_code or data.error_code
        if data.error_code in _LEADER_HAS_MOVED and ctx.version >= _NAMES_LEADER_SINCE and item.partition is not None:
            self._name_leader(item.partition, data)

    def _name_leader(self, partition: Partition, data: PartitionData) -> None:
        broker = self._broker
        known = broker.metadata.leadership(partition)
        if known is None:
            return
        data.current_leader = LeaderIdAndEpoch(leader_id=known.leader, leader_epoch=known.leader_epoch)
        leader = broker.metadata.leader(known)
        if leader is not None:
            at = self._ctx.session.endpoint_of(leader)
            self._leaders[leader.node_id] = NodeEndpoint(node_id=leader.node_id, host=at.host, port=at.port)


def _topic_response(topic: TopicKey, answers: list[PartitionData]) -> FetchableTopicResponse:
    if isinstance(topic, str):
        return FetchableTopicResponse(topic=topic, partitions=answers)
    return FetchableTopicResponse(topic_id=topic, partitions=answers)


class _DelayedFetch(DelayedOperation):
    """A long poll: waits for `min_bytes`, for `max_wait_ms` at most; then answers with whatever is there."""

    __slots__ = ("_ctx", "_fetch")

    def __init__(self, ctx: RequestContext, fetch: Fetch, max_wait_ms: int) -> None:
        super().__init__(max_wait_ms)
        self._ctx = ctx
        self._fetch = fetch

    def try_complete(self) -> bool:
        return self._fetch.is_ready() and self.force_complete()

    def on_complete(self) -> None:
        self._ctx.responder.complete(self._ctx, self._fetch.finish)


class _DelayedFetchOfOne(DelayedOperation):
    """The same for one partition, at whose end the client was; should it not be as it was, a fetch like others."""

    __slots__ = ("_broker", "_ctx", "_found", "_item", "_partition", "_request")

    def __init__(
        self, ctx: RequestContext, broker: "RecordServices", request: FetchRequest, partition: Partition
    ) -> None:
        super().__init__(request.max_wait_ms)
        self._ctx = ctx
        self._broker = broker
        self._request = request
        self._partition = partition
        topic = request.topics[0]
        self._item = WantedPartition(topic.topic or topic.topic_id, topic.partitions[0], broker.metadata)
        self._found: LogRead | None = None

    def try_complete(self) -> bool:
        ctx, request, partition = self._ctx, self._request, self._partition
        if wanted_by(ctx, self._broker, request) is partition:
            self._found = find(ctx, self._broker, request, partition)
            if self._found is not None:
                return self.force_complete()
        return self._as_others().is_ready() and self.force_complete()

    def on_complete(self) -> None:
        self._ctx.responder.complete(self._ctx, self._answer)

    def _answer(self) -> FetchResponse | Outcome:
        found, self._found = self._found, None
        if found is not None:
            return tell(self._request, self._partition, found)
        fetch = self._ctx.fetch = self._as_others()
        return fetch.finish()

    def _as_others(self) -> Fetch:
        # As in Kafka, the limit is that of the arrival, when there was no quota.
        max_bytes = min(self._request.max_bytes, self._broker.max_fetch_bytes)
        return Fetch(self._ctx, self._broker, self._request, [self._item], opens_session=False, max_bytes=max_bytes)
