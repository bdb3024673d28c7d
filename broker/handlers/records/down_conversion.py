"""What consumers of before Kafka 2.1 get instead of what the log holds. Loaded with the first fetch of one.

Fetch up to v9 knows no zstd (KIP-110): of a topic whose own compression is zstd it gets UNSUPPORTED_COMPRESSION_TYPE;
zstd that a producer chose is sent as it is, as by Kafka. Up to v3 it reads message sets of magic 1, up to v1 of magic
0, if `message.downconversion.enable` (KIP-283; gone with Kafka 4.0) does not forbid it. Follows
KafkaApis.handleFetchRequest of Kafka 3.9.
"""

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.fetch import PartitionData
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.convert import down_convert
from sluice.protocol.records.invalid import InvalidRecords

_MAGIC_1_SINCE = 2
_RECORD_BATCHES_SINCE = 4


def convert_for_old_client(data: PartitionData, version: int, topic: Topic, fetch_offset: int) -> None:
    """Makes the answer for a partition one that `version`, up to 9, can read; or one that says why it cannot be."""
    if topic.config.text("compression.type") == "zstd":
        _refuse(data, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    elif version < _RECORD_BATCHES_SINCE:
        if not topic.config.boolean("message.downconversion.enable"):
            _refuse(data, ErrorCode.UNSUPPORTED_VERSION)
            return
        parts = data.records
        assert isinstance(parts, list)
        try:
            data.records = down_convert(b"".join(parts), 1 if version >= _MAGIC_1_SINCE else 0, fetch_offset)
        except InvalidRecords as invalid:
            _refuse(data, invalid.code)


def _refuse(data: PartitionData, code: int) -> None:
    data.error_code, data.records, data.aborted_transactions = code, b"", []
    data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
