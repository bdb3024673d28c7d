"""The fetch that nearly every consumer sends: of one partition, without a session.

It is answered as `Fetch` in handlers/fetch.py answers it; only less is asked on the way, for there is no session to
keep, no quota to charge, no fault to be found. Whatever else is wanted, and whatever is wrong, is left to the other.
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


def wanted_by(ctx: RequestContext, broker: "RecordServices", request: FetchRequest) -> Partition | None:
    """The one partition that is asked for; None where the other way is to be gone."""
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
    topic = metadata.topics.get(asked.topic) or metadata.topics_by_id.get(
        asked.topic_id
    )  # a request has one of the two
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


def find(ctx: RequestContext, broker: "RecordServices", request: FetchRequest, partition: Partition) -> LogRead | None:
    """What there is in the partition, if that is enough; None also where something is wrong."""
    log = partition.log
    wanted = request.topics[0].partitions[0]
    offset, most_bytes = wanted.fetch_offset, wanted.partition_max_bytes
    end = log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark
    if not log.log_start_offset <= offset < end:
        return None
    max_bytes = min(request.max_bytes, broker.max_fetch_bytes)
    found = log.read(offset, min(most_bytes, max_bytes), end, True)
    size = found.size
    # A batch that is larger than the client wants counts less, while it waits, than it has.
    if found.error_code or not 0 < size <= most_bytes or size < min(request.min_bytes, max_bytes):
        return None
    return found


def tell(request: FetchRequest, partition: Partition, found: LogRead) -> FetchResponse:
    """The answer, which goes out for sure: it is counted."""
    partition.traffic.bytes_out += found.size
    log = partition.log
    asked = request.topics[0]
    wanted = asked.partitions[0]
    aborted = None
    if request.isolation_level == READ_COMMITTED:
        aborted = aborted_transactions(log, wanted.fetch_offset, found.next_offset)
    data = partition_data(log, wanted.partition, aborted, found.parts)
    return FetchResponse(0, 0, 0, [FetchableTopicResponse(asked.topic, asked.topic_id, [data])])


def waits_at_end(ctx: RequestContext, broker: "RecordServices", request: FetchRequest, partition: Partition) -> bool:
    """Whether nothing is there yet, and the client wants to wait: what consumers do most of the time."""
    log = partition.log
    end = log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark
    return (
        log.log_start_offset <= request.topics[0].partitions[0].fetch_offset == end
        and request.max_wait_ms > 0
        and min(request.min_bytes, request.max_bytes, broker.max_fetch_bytes) > 0
    )


def _reads_as_it_is(version: int, topic: Topic) -> bool:
    """Whether a client of before v10 gets what the log holds: see down_conversion.py."""
    return version >= _RECORD_BATCHES_SINCE and topic.config.text("compression.type") != "zstd"
