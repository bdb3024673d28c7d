"""The fast path of Fetch: one partition without a session.

Its responses equal those of `Fetch` in general_fetch.py, which serves other requests and errors.
"""

from sluice.broker.broker import Broker
from sluice.broker.log.log_results import LogRead
from sluice.broker.metadata.topic import Partition, Topic
from sluice.broker.replica.fetch_session import FINAL_EPOCH
from sluice.broker.replica.partition_reader import aborted_transactions, partition_data
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis.fetch import FetchableTopicResponse, FetchPartition, FetchRequest, FetchResponse

READ_COMMITTED = 1
# Clients before v10 do not support zstd (KIP-110); those before v4, no record batches.
FORMATS_KNOWN_SINCE = 10
_RECORD_BATCHES_SINCE = 4


def eligible_partition(ctx: RequestContext, broker: Broker, request: FetchRequest) -> Partition | None:
    if request.session_epoch != FINAL_EPOCH or request.session_id:
        return None
    try:
        (requested_topic,) = request.topics
        (requested,) = requested_topic.partitions
    except ValueError:
        return None
    metadata = broker.metadata
    quotas = broker.throttler.quotas
    index, epoch = requested.partition, requested.current_leader_epoch
    topic = metadata.topics.get(requested_topic.topic) or metadata.topics_by_id.get(requested_topic.topic_id)
    if (
        topic is None
        or not 0 <= index < len(topic.partitions)
        or (partition := topic.partitions[index]).leader != broker.node_id
        or (epoch >= 0 and epoch != partition.leader_epoch)
        or requested.last_fetched_epoch >= 0
        or partition.deleted
        or request.replica_id >= 0
        or request.replica_state is not None
        or quotas.fetch.quotas_enabled
        or quotas.request is not None
        or not broker.has_plain_fetches
        or ctx.fault is not None
        or (ctx.version < FORMATS_KNOWN_SINCE and not _is_sent_unchanged(ctx.version, topic))
    ):
        return None
    return partition


def read_available(
    request: FetchRequest, requested: FetchPartition, partition: Partition, limit_bytes: int
) -> LogRead | None:
    """Read up to `limit_bytes`, or one batch; return None on an error or with fewer than `min_bytes`."""
    log = partition.log
    offset, most_bytes = requested.fetch_offset, requested.partition_max_bytes
    end = log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark
    if not log.log_start_offset <= offset < end:
        return None
    max_bytes = request.max_bytes
    if max_bytes > limit_bytes:  # cheaper than a call of `min`
        max_bytes = limit_bytes
    found = log.read(offset, min(max_bytes, most_bytes), end, True)
    size = found.size
    # A larger batch counts for `min_bytes` only up to `partition_max_bytes`: see `bytes_waiting`.
    if found.error_code or not 0 < size <= most_bytes or (size < request.min_bytes and size < max_bytes):
        return None
    return found


def build_response(request: FetchRequest, partition: Partition, found: LogRead) -> FetchResponse:
    partition.traffic.bytes_out += found.size
    log = partition.log
    topic = request.topics[0]
    requested = topic.partitions[0]
    aborted = None
    if request.isolation_level == READ_COMMITTED:
        aborted = aborted_transactions(log, requested.fetch_offset, found.next_offset)
    data = partition_data(log, requested.partition, aborted, found.parts)
    return FetchResponse(0, 0, 0, [FetchableTopicResponse(topic.topic, topic.topic_id, [data])])


def waits_at_end(broker: Broker, request: FetchRequest, partition: Partition) -> bool:
    log = partition.log
    end = log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark
    return (
        log.log_start_offset <= request.topics[0].partitions[0].fetch_offset == end
        and request.max_wait_ms > 0
        and min(request.min_bytes, request.max_bytes, broker.max_fetch_bytes) > 0
    )


def _is_sent_unchanged(version: int, topic: Topic) -> bool:
    # A client before v10: see down_conversion.py.
    return version >= _RECORD_BATCHES_SINCE and topic.config.text("compression.type") != "zstd"
