"""Fetch responses for consumers before Kafka 2.1. Imported by the first such fetch.

Fetch up to v9 does not support zstd (KIP-110): a topic with `compression.type=zstd` returns
UNSUPPORTED_COMPRESSION_TYPE, but zstd batches of other topics are sent unchanged, as in Kafka. Versions up to v3 get
message sets of magic 1, up to v1 of magic 0, if `message.downconversion.enable` allows it (KIP-283; removed in Kafka
4.0). Follows KafkaApis.handleFetchRequest of Kafka 3.9.
"""

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.fetch import PartitionData
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.convert import down_convert
from sluice.protocol.records.invalid import InvalidRecords

_MAGIC_1_SINCE = 2
_RECORD_BATCHES_SINCE = 4


def convert_for_old_client(data: PartitionData, version: int, topic: Topic, fetch_offset: int) -> None:
    """Convert to a format of `version`, or set an error."""
    if topic.config.text("compression.type") == "zstd":
        _fail(data, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    elif version < _RECORD_BATCHES_SINCE:
        if not topic.config.boolean("message.downconversion.enable"):
            _fail(data, ErrorCode.UNSUPPORTED_VERSION)
            return
        parts = data.records
        assert isinstance(parts, list)
        try:
            data.records = down_convert(b"".join(parts), 1 if version >= _MAGIC_1_SINCE else 0, fetch_offset)
        except InvalidRecords as invalid:
            _fail(data, invalid.code)


def _fail(data: PartitionData, code: int) -> None:
    data.error_code, data.records, data.aborted_transactions = code, b"", []
    data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
