"""The fast path of Fetch in a session of one partition that has records, also with quotas.

Its responses and its session equal those of `Fetch` in general_fetch.py, which serves other requests. Nothing else runs
between its read and its response.
"""

from typing import ClassVar

from msgspec import Struct

from sluice.broker.broker import Broker
from sluice.broker.journal.about import partitions_subject
from sluice.broker.metadata.topic import Partition
from sluice.broker.replica.fetch_session import RequestedPartition
from sluice.broker.replica.partition_reader import aborted_transactions, partition_data
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID

from .single_partition_fetch import FORMATS_KNOWN_SINCE, READ_COMMITTED, read_available

_TOPIC_IDS_SINCE = 13


class SessionFetch(Struct, gc=False):
    is_from_follower: ClassVar[bool] = False
    charged_bytes: ClassVar[int] = 0

    session_id: int
    item: RequestedPartition
    partition: Partition
    read_bytes: int

    def sent(self, _: Message) -> bool:
        item = self.item
        self.partition.traffic.bytes_out += self.read_bytes
        log = self.partition.log
        item.high_watermark, item.log_start_offset = log.high_watermark, log.log_start_offset
        return False

    def throttled(self, throttle_time_ms: int) -> FetchResponse:
        return FetchResponse(throttle_time_ms, 0, self.session_id)


def read_in_session(ctx: RequestContext, broker: Broker, request: FetchRequest) -> FetchResponse | None:
    """Read, update the session, and set `ctx.fetch`; return None if only the general path can."""
    sessions = broker.fetch_sessions
    session = sessions.find(request.session_id)
    if session is None or session.epoch != request.session_epoch:
        return None
    try:
        (item,) = session.partitions.values()
        requested = item.request
        if request.topics:
            (topic,) = request.topics
            (requested,) = topic.partitions
            if (topic.topic or topic.topic_id) != item.topic or requested.partition != item.request.partition:
                return None
    except ValueError:  # not exactly one
        return None
    partition = item.partition
    epoch = requested.current_leader_epoch
    if (
        partition is None
        or partition.leader != broker.node_id
        or (epoch >= 0 and epoch != partition.leader_epoch)
        or requested.last_fetched_epoch >= 0
        or partition.deleted
        or request.replica_id >= 0
        or request.replica_state is not None
        or request.forgotten_topics_data
        or session.uses_topic_ids != (ctx.version >= _TOPIC_IDS_SINCE)
        or session.counted != 1  # another request is changing it
        or not broker.has_plain_fetches
        or ctx.fault is not None
        or ctx.long is not None
        or ctx.version < FORMATS_KNOWN_SINCE
    ):
        return None
    quotas, limit_bytes = broker.throttler.quotas, broker.max_fetch_bytes
    if quotas.fetch.quotas_enabled or quotas.request is not None:
        if broker.throttler.holds_fetch(ctx.version):
            return None
        most = broker.throttler.largest_fetch(ctx)
        if most < limit_bytes:
            limit_bytes = int(most)
    found = read_available(request, requested, partition, limit_bytes)
    if found is None:
        return None
    item.request = requested
    sessions.advance(session, ctx.now_ms)
    if ctx.subject is not None:
        ctx.subject = partitions_subject([(item.topic_name, requested.partition)])
    ctx.fetch = SessionFetch(session.id, item, partition, found.size)
    log, aborted = partition.log, None
    if request.isolation_level == READ_COMMITTED:
        aborted = aborted_transactions(log, requested.fetch_offset, found.next_offset)
    data = [partition_data(log, requested.partition, aborted, found.parts)]
    key = item.topic
    if isinstance(key, str):
        return FetchResponse(0, 0, session.id, [FetchableTopicResponse(key, ZERO_UUID, data)])
    return FetchResponse(0, 0, session.id, [FetchableTopicResponse("", key, data)])
