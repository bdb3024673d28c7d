"""The fast path of Fetch: one partition, without a session, which is what nearly every consumer sends.

Its responses are those of `Fetch` in general_fetch.py, without the cost of sessions, quotas and fault rules. All other
requests, and all errors, take that general path.
"""

from typing import TYPE_CHECKING

from sluice.broker.log.log_results import LogRead
from sluice.broker.metadata.topic import Partition, Topic
from sluice.broker.replica.fetch_session import FINAL_EPOCH
from sluice.broker.replica.partition_reader import aborted_transactions, partition_data
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse

if TYPE_CHECKING:
    from sluice.broker.handlers.services import RecordServices

READ_COMMITTED = 1  # as an isolation level
# Older clients know no zstd (KIP-110), and up to v3 no record batches.
FORMATS_KNOWN_SINCE = 10
_RECORD_BATCHES_SINCE = 4


def eligible_partition(ctx: RequestContext, broker: "RecordServices", request: FetchRequest) -> Partition | None:
    """Return the one requested partition, or None if the request takes the general path."""
    if request.session_epoch != FINAL_EPOCH or request.session_id:
        return None
    try:
        (asked,) = request.topics
        (wanted,) = asked.partitions
    except ValueError:  # there are more, or none
        return None
    metadata = broker.metadata
    quotas = broker.throttler.quotas
    index, epoch = wanted.partition, wanted.current_leader_epoch
    # A request has a name or an id.
    topic = metadata.topics.get(asked.topic) or metadata.topics_by_id.get(asked.topic_id)
    if (
        topic is None
        or not 0 <= index < len(topic.partitions)
        or (partition := topic.partitions[index]).leader != broker.node_id
        or (epoch >= 0 and epoch != partition.leader_epoch)
        or wanted.last_fetched_epoch >= 0
        or partition.deleted
        or request.replica_id >= 0
        or request.replica_state is not None
        or quotas.fetch.quotas_enabled
        or quotas.request is not None
        or broker.authorizer is not None
        or ctx.fault is not None
        or (ctx.version < FORMATS_KNOWN_SINCE and not _reads_as_it_is(ctx.version, topic))
    ):
        return None
    return partition


def read_available(broker: "RecordServices", request: FetchRequest, partition: Partition) -> LogRead | None:
    """Read the partition if enough is available; return None if not, or if the read fails."""
    log = partition.log
    wanted = request.topics[0].partitions[0]
    offset, most_bytes = wanted.fetch_offset, wanted.partition_max_bytes
    end = log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark
    if not log.log_start_offset <= offset < end:
        return None
    max_bytes, limit_bytes = request.max_bytes, broker.max_fetch_bytes
    if max_bytes > limit_bytes:  # cheaper than a call of `min`
        max_bytes = limit_bytes
    found = log.read(offset, min(max_bytes, most_bytes), end, True)
    size = found.size
    # A batch larger than `partition_max_bytes` counts for `min_bytes` with that limit only: see `bytes_waiting`.
    if found.error_code or not 0 < size <= most_bytes or (size < request.min_bytes and size < max_bytes):
        return None
    return found


def build_response(request: FetchRequest, partition: Partition, found: LogRead) -> FetchResponse:
    """Build the response and count its bytes: nothing prevents its sending any more."""
    partition.traffic.bytes_out += found.size
    log = partition.log
    asked = request.topics[0]
    wanted = asked.partitions[0]
    aborted = None
    if request.isolation_level == READ_COMMITTED:
        aborted = aborted_transactions(log, wanted.fetch_offset, found.next_offset)
    data = partition_data(log, wanted.partition, aborted, found.parts)
    return FetchResponse(0, 0, 0, [FetchableTopicResponse(asked.topic, asked.topic_id, [data])])


def waits_at_end(broker: "RecordServices", request: FetchRequest, partition: Partition) -> bool:
    """Return whether a long poll starts at the end of the partition, as most fetches of a consumer do."""
    log = partition.log
    end = log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark
    return (
        log.log_start_offset <= request.topics[0].partitions[0].fetch_offset == end
        and request.max_wait_ms > 0
        and min(request.min_bytes, request.max_bytes, broker.max_fetch_bytes) > 0
    )


def _reads_as_it_is(version: int, topic: Topic) -> bool:
    """Return whether a client before v10 receives the batches of the log unchanged: see down_conversion.py."""
    return version >= _RECORD_BATCHES_SINCE and topic.config.text("compression.type") != "zstd"
