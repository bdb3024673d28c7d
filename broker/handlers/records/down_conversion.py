"""Fetch responses for consumers before Kafka 2.1.

Fetch up to v9 does not support zstd (KIP-110): a topic with `compression.type=zstd` returns
UNSUPPORTED_COMPRESSION_TYPE, but zstd batches of other topics are sent unchanged, as in Kafka. Versions up to v3 get
message sets of magic 1, up to v1 of magic 0, if `message.downconversion.enable` allows it (KIP-283). Follows
KafkaApis.handleFetchRequest of Kafka 3.9.
"""

from collections.abc import Sequence
from math import inf

from sluice.broker.metadata.topic import Topic
from sluice.broker.replica.fetch_session import PartitionRead
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.worker import Worker, respond_after
from sluice.protocol.apis.fetch import FetchResponse, PartitionData
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.batch import ATTRIBUTES_AT, CODEC_MASK, batch_bounds
from sluice.protocol.records.convert import down_convert
from sluice.protocol.records.invalid import InvalidRecords

# Clients before v10 do not support zstd (KIP-110); those before v4, no record batches.
FORMATS_KNOWN_SINCE = 10
_MAGIC_1_SINCE = 2
_RECORD_BATCHES_SINCE = 4
# Uncompressed records up to this size are converted at once, in up to 20 ms.
_SHORT_BYTES = 32 * 1024


def is_sent_unchanged(version: int, topic: Topic) -> bool:
    return version >= _RECORD_BATCHES_SINCE and not topic.compresses_zstd


def respond_converted(
    ctx: RequestContext, worker: Worker, reads: Sequence[PartitionRead], response: FetchResponse, outcome: Outcome
) -> Message | Outcome:
    """Return `outcome` when `response` has the formats of an old client; `reads` are its partitions, in order."""
    conversions = []
    found = (data for topic in response.responses for data in topic.partitions)
    for data, read in ctx.sliced(zip(found, reads, strict=True)):
        partition = read.item.partition
        if partition is None or data.error_code:
            continue
        config = partition.topic.config
        if is_sent_unchanged(ctx.version, partition.topic):
            continue
        if partition.topic.compresses_zstd:
            _fail(ctx, data, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        elif config.boolean("message.downconversion.enable"):
            conversions.append(_Conversion(data, ctx.version, read.item.request.fetch_offset))
        else:
            _fail(ctx, data, ErrorCode.UNSUPPORTED_VERSION)
    if not conversions:
        return outcome

    def respond(converted: list[bytes | InvalidRecords]) -> Outcome:
        for conversion, records in zip(conversions, converted, strict=True):
            if isinstance(records, InvalidRecords):
                _fail(ctx, conversion.data, records.code)
            else:
                conversion.data.records = records
        return outcome

    def work() -> list[bytes | InvalidRecords]:
        return [conversion.convert() for conversion in conversions]

    if sum(conversion.size for conversion in conversions) <= _SHORT_BYTES:
        return respond(work())
    return respond_after(ctx, worker, work, respond)


class _Conversion:
    def __init__(self, data: PartitionData, version: int, fetch_offset: int) -> None:
        assert isinstance(data.records, list)
        self.data = data
        self._parts = data.records
        self._magic = 1 if version >= _MAGIC_1_SINCE else 0
        self._fetch_offset = fetch_offset

    @property
    def size(self) -> float:
        """The size of the records; infinite if they are compressed."""
        if any(
            part[position + ATTRIBUTES_AT + 1] & CODEC_MASK
            for part in self._parts
            for position, _, _ in batch_bounds(part)
        ):
            return inf
        return sum(map(len, self._parts))

    def convert(self) -> bytes | InvalidRecords:
        try:
            return down_convert(b"".join(self._parts), self._magic, self._fetch_offset)
        except InvalidRecords as invalid:
            return invalid


def _fail(ctx: RequestContext, data: PartitionData, code: int) -> None:
    ctx.error_code = ctx.error_code or code
    data.error_code, data.records, data.aborted_transactions = code, b"", []
    data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
