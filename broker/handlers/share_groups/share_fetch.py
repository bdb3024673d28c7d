"""ShareFetch, key 78, versions 1-2 (KIP-932).

Follows KafkaApis.handleShareFetchRequest, SharePartitionManager.fetchMessages and DelayedShareFetch. Records are
acquired when the response is built. As in Kafka, a client above its fetch quota gets an empty response, and its records
are delivered again after their acquisition lock.

Different on purpose: a fetch waits in the purgatory of Fetch, and the first partition gets the bytes that cannot be
divided evenly.
"""

from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.requests.context import Outcome, RequestContext, Wait
from sluice.broker.requests.delayed_request import DelayedRequest
from sluice.broker.requests.served_api import Charge, served
from sluice.broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, MemberKey, ShareSession
from sluice.protocol.apis.share_fetch import ShareFetchRequest, ShareFetchResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.purgatory.operation import DelayedOperation

from .acknowledgements import Results, acknowledge, member_of
from .share_read import ShareRead

API = served("ShareFetch", "1-2", charge=Charge.SHARE_FETCH_BYTES)


def handle(ctx: RequestContext, request: ShareFetchRequest, broker: Broker) -> Message | Outcome:
    member = member_of(ctx, broker, request.group_id, request.member_id)
    if isinstance(member, ErrorCode):
        return _failed(ctx, member)
    if request.is_renew_ack and any((request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)):
        return _failed(ctx, ErrorCode.INVALID_REQUEST)
    session = _session(ctx, request, broker, member)
    if session is ErrorCode.SHARE_SESSION_LIMIT_REACHED and request.max_wait_ms > 0:
        refusal = _Refusal(ctx, request.max_wait_ms)
        return Wait(refusal.force_complete, partial(broker.scheduler.delay, refusal))
    if isinstance(session, ErrorCode):
        return _failed(ctx, session)
    return _ShareFetch(ctx, request, broker, session).start()


def _session(
    ctx: RequestContext, request: ShareFetchRequest, broker: Broker, member: MemberKey
) -> ShareSession | ErrorCode:
    sessions = broker.share_partitions.sessions
    topics, known = request.topics, broker.metadata.topics_by_id
    requested = {
        (one.topic_id, each.partition_index): one.topic_id in known for one in topics for each in one.partitions
    }
    if request.share_session_epoch == INITIAL_EPOCH:
        if any(one.acknowledgement_batches for topic in topics for one in topic.partitions):
            return ErrorCode.INVALID_REQUEST
        if len(requested) < sum(len(topic.partitions) for topic in topics):  # as in Kafka, an internal error
            sessions.remove(member)
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return sessions.open(member, ctx.session.connection, requested)
    session = sessions.resume(member, request.share_session_epoch)
    if isinstance(session, ErrorCode) or request.share_session_epoch == FINAL_EPOCH:
        return session
    error = sessions.add_partitions(session, requested)
    if error:
        return error
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            session.forget((topic.topic_id, index))
    return session


def _failed(ctx: RequestContext, code: ErrorCode) -> ShareFetchResponse:
    ctx.error_code = code
    return ShareFetchResponse(error_code=code)


class _Refusal(DelayedRequest):
    """A request without a session, refused after the time it would wait for records."""

    __slots__ = ()

    def _respond(self) -> Message:
        return _failed(self._ctx, ErrorCode.SHARE_SESSION_LIMIT_REACHED)


class _ShareFetch:
    __slots__ = ("_acknowledged", "_broker", "_ctx", "_has_read", "_is_parked", "_read", "_request", "_session")

    def __init__(self, ctx: RequestContext, request: ShareFetchRequest, broker: Broker, session: ShareSession) -> None:
        self._ctx = ctx
        self._request = request
        self._broker = broker
        self._session = session
        is_final = request.share_session_epoch == FINAL_EPOCH
        partitions = [] if is_final or request.is_renew_ack else session.rotated()
        self._read = ShareRead(ctx, request, broker, session, partitions)
        self._acknowledged: Results | None = None
        self._has_read = False
        self._is_parked = False

    def start(self) -> Message | Outcome:
        self._acknowledge()
        read = self._read
        if read.is_invalid:  # as in Kafka, an internal error
            return _failed(self._ctx, ErrorCode.UNKNOWN_SERVER_ERROR)
        if self._request.max_wait_ms <= 0 or read.is_ready():
            self._has_read = True
        else:
            operation = _DelayedShareFetch(self, self._request.max_wait_ms)
            self._is_parked = True
            return self._ctx.park_for_more(operation, self._broker.replicas.fetches, read.keys())
        if self._acknowledged is None:
            self._is_parked = True
            return self._ctx.park_until_resumed()
        return self._respond()

    def _acknowledge(self) -> None:
        requested = {
            (topic.topic_id, one.partition_index): one.acknowledgement_batches
            for topic in self._request.topics
            for one in topic.partitions
        }
        if any(requested.values()):
            renews = self._request.is_renew_ack
            acknowledge(self._ctx, self._broker, self._session.key, requested, self._end_acknowledge, renews=renews)
        else:
            self._acknowledged = {}

    def _end_acknowledge(self, results: Results) -> None:
        self._acknowledged = results
        if self._has_read and self._is_parked:
            self._ctx.resume(self._respond)

    def is_ready(self) -> bool:
        return self._read.is_ready()

    def end_wait(self) -> None:
        self._has_read = True
        if self._acknowledged is not None:
            self._ctx.resume(self._respond)

    def _respond(self) -> Outcome:
        assert self._acknowledged is not None
        self._read.response = self._read.respond(self._acknowledged)
        if self._request.share_session_epoch == FINAL_EPOCH:
            self._broker.share_partitions.release(self._session)
        return self._read


class _DelayedShareFetch(DelayedOperation):
    """A long poll for `min_bytes` of available records."""

    __slots__ = ("_fetch",)

    def __init__(self, fetch: _ShareFetch, max_wait_ms: int) -> None:
        super().__init__(max_wait_ms)
        self._fetch = fetch

    def try_complete(self) -> bool:
        return self._fetch.is_ready() and self.force_complete()

    def on_complete(self) -> None:
        self._fetch.end_wait()
