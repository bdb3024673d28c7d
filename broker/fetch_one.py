"""The fetch that nearly every consumer sends most of the time: of one partition, and the bytes it waits for are there.

What `fetch_one` answers is what `Fetch` in handlers/fetch.py would; it only asks less on the way, for there is no
session to keep, no quota to charge, no fault to be found and nothing to wait for. Whatever else is wanted, and whatever
is wrong, is left to the other.
"""

from sluice.protocol.apis.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

from .context import RequestContext
from .fetch_session import FINAL_EPOCH
from .topic import Topic

READ_COMMITTED = 1  # as an isolation level
# Older clients know no zstd (KIP-110), and up to v3 no record batches.
FORMATS_KNOWN_SINCE = 10
_RECORD_BATCHES_SINCE = 4


def fetch_one(ctx: RequestContext, request: FetchRequest) -> FetchResponse | None:
    """What there is in the one partition that is asked for, if that is enough; None where the other way is to be gone.

    Then nothing has changed. Else what is answered is counted already.
    """
    try:
        (asked,) = request.topics
        (wanted,) = asked.partitions
    except ValueError:  # there are more, or it is a session that says no more of them
        return None
    broker = ctx.broker
    cluster = broker.cluster
    quotas = broker.enforcement.quotas
    index, epoch, offset = wanted.partition, wanted.current_leader_epoch, wanted.fetch_offset
    topic = cluster.topics.get(asked.topic) or cluster.topics_by_id.get(asked.topic_id)  # a request has one of the two
    if (
        topic is None
        or request.session_epoch != FINAL_EPOCH
        or request.session_id
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
    log = partition.log
    committed = request.isolation_level == READ_COMMITTED
    end = log.last_stable_offset if committed else log.high_watermark
    if not log.log_start_offset <= offset < end:
        return None
    most_bytes = wanted.partition_max_bytes
    max_bytes = min(request.max_bytes, broker.max_fetch_bytes)
    found = log.read(offset, min(most_bytes, max_bytes), end, True)
    size = found.size
    # A batch that is larger than the client wants counts less, while it waits, than it has.
    if found.error_code or not 0 < size <= most_bytes or size < min(request.min_bytes, max_bytes):
        return None
    partition.traffic.bytes_out += size
    aborted = None
    if committed:
        aborted = [
            AbortedTransaction(one.producer_id, one.first_offset)
            for one in log.aborted_transactions(offset, found.next_offset)
        ]
    # By position: index, error code, high watermark, last stable offset, log start, where it diverges, who leads now,
    # a snapshot instead, aborted transactions, which replica is to be read, records.
    # fmt: off
    data = PartitionData(
        index, 0, log.high_watermark, log.last_stable_offset, log.log_start_offset, None, None, None, aborted, -1,
        found.parts,
    )
    # fmt: on
    return FetchResponse(0, 0, 0, [FetchableTopicResponse(asked.topic, asked.topic_id, [data])])


def _reads_as_it_is(version: int, topic: Topic) -> bool:
    """Whether a client of before v10 gets what the log holds: see fetch_conversion.py."""
    return version >= _RECORD_BATCHES_SINCE and topic.config.text("compression.type") != "zstd"
