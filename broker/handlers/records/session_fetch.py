"""The fast path of Fetch in a session of one partition that has records, also with quotas.

Its responses and its session equal those of `Fetch` in general_fetch.py, which serves all other requests.
"""

from typing import TYPE_CHECKING

from sluice.broker.journal.about import partitions_subject
from sluice.broker.log.log_results import LogRead
from sluice.broker.metadata.topic import Partition
from sluice.broker.replica.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, FetchSession, RequestedPartition
from sluice.broker.replica.partition_reader import aborted_transactions, partition_data
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis.fetch import FetchableTopicResponse, FetchPartition, FetchRequest, FetchResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .single_partition_fetch import FORMATS_KNOWN_SINCE, READ_COMMITTED, read_available

if TYPE_CHECKING:
    from sluice.broker.handlers.services import RecordServices

_TOPIC_IDS_SINCE = 13


class SessionFetch:
    """A response of the session, until it is sent or its client is throttled."""

    __slots__ = ("_ctx", "_epoch", "_high_watermark", "_item", "_log_start_offset", "_session", "read_bytes")

    is_from_follower = False

    def __init__(self, ctx: RequestContext, session: FetchSession, item: RequestedPartition, read_bytes: int) -> None:
        partition = item.partition
        assert partition is not None  # checked by `read_in_session`
        self._ctx = ctx
        self._session = session
        self._epoch = session.epoch
        self._item = item
        self._high_watermark, self._log_start_offset = partition.log.high_watermark, partition.log.log_start_offset
        self.read_bytes = read_bytes

    def sent(self, response: Message) -> bool:
        item, partitions = self._item, self._session.partitions
        assert item.partition is not None
        item.partition.traffic.bytes_out += self.read_bytes
        item.high_watermark, item.log_start_offset = self._high_watermark, self._log_start_offset
        if len(partitions) > 1:  # another connection has changed the session
            key = item.topic, item.request.partition
            if partitions.pop(key, None) is not None:
                partitions[key] = item
        return False

    def throttled(self, throttle_time_ms: int) -> FetchResponse:
        session = self._session
        code = ErrorCode.NONE if session.epoch == self._epoch else ErrorCode.INVALID_FETCH_SESSION_EPOCH
        self._ctx.error_code = code
        return FetchResponse(throttle_time_ms=throttle_time_ms, error_code=code, session_id=session.id)


def read_in_session(ctx: RequestContext, broker: "RecordServices", request: FetchRequest) -> FetchResponse | None:
    """Read, update the session, and set `ctx.fetch`; return None if only the general path can."""
    session = broker.fetch_sessions.find(request.session_id)
    by_id = ctx.version >= _TOPIC_IDS_SINCE
    if (
        session is None
        or session.epoch != request.session_epoch
        or request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH)
        or len(session.partitions) != 1
        or session.uses_topic_ids != by_id
        or request.forgotten_topics_data
    ):
        return None
    (item,) = session.partitions.values()
    requested = _requested(request, item, by_id)
    if requested is None or not _can_read(ctx, broker, request, item.partition, requested):
        return None
    partition = item.partition
    assert partition is not None
    max_bytes = min(request.max_bytes, broker.max_fetch_bytes, broker.throttler.largest_fetch(ctx))
    found = read_available(request, requested, partition, int(max_bytes))
    if found is None:
        return None
    broker.fetch_sessions.resume(ctx, request, by_id, broker.metadata)
    if ctx.subject is not None:
        ctx.subject = partitions_subject([(item.topic_name, requested.partition)])
    ctx.fetch = SessionFetch(ctx, session, item, found.size)
    return _response(request, session, item, partition, found)


def _requested(request: FetchRequest, item: RequestedPartition, by_id: bool) -> FetchPartition | None:
    """Return the session's partition as the request specifies it; None if it names others."""
    if not request.topics:
        return item.request
    try:
        (topic,) = request.topics
        (requested,) = topic.partitions
    except ValueError:  # not exactly one
        return None
    key = topic.topic_id if by_id else topic.topic
    return requested if key == item.topic and requested.partition == item.request.partition else None


def _can_read(
    ctx: RequestContext,
    broker: "RecordServices",
    request: FetchRequest,
    partition: Partition | None,
    requested: FetchPartition,
) -> bool:
    epoch = requested.current_leader_epoch
    return not (
        partition is None
        or partition.deleted
        or partition.leader != broker.node_id
        or (epoch >= 0 and epoch != partition.leader_epoch)
        or requested.last_fetched_epoch >= 0
        or request.replica_id >= 0
        or request.replica_state is not None
        or not broker.has_plain_fetches
        or ctx.fault is not None
        or ctx.version < FORMATS_KNOWN_SINCE
        or broker.throttler.holds_fetch(ctx.version)
    )


def _response(
    request: FetchRequest, session: FetchSession, item: RequestedPartition, partition: Partition, found: LogRead
) -> FetchResponse:
    log, aborted = partition.log, None
    if request.isolation_level == READ_COMMITTED:
        aborted = aborted_transactions(log, item.request.fetch_offset, found.next_offset)
    data = [partition_data(log, item.request.partition, aborted, found.parts)]
    key = item.topic
    if isinstance(key, str):
        topic = FetchableTopicResponse(topic=key, partitions=data)
    else:
        topic = FetchableTopicResponse(topic_id=key, partitions=data)
    return FetchResponse(0, 0, session.id, [topic])
