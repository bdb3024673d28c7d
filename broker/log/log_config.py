"""Log settings of a topic's partitions, with Kafka's names and defaults."""

from binascii import crc32

import msgspec

from sluice.config.broker_config import Config, TopicConfig
from sluice.config.property_table import TOPIC_PROPERTIES
from sluice.config.value_types import LONG_MAX
from sluice.protocol.records.batch import CREATE_TIME, LOG_APPEND_TIME
from sluice.protocol.records.compression import NAMES as CODEC_NAMES
from sluice.protocol.records.log_validator import AppendConfig

# Size of memory segments: 1/16 of a 64 MiB budget. Kafka's 1 GiB is for files.
DEFAULT_SEGMENT_BYTES = 4 * 1024 * 1024
_TIMESTAMP_TYPES = {"CreateTime": CREATE_TIME, "LogAppendTime": LOG_APPEND_TIME}
# compression.type -> codec; None keeps the producer's codec.
_CODECS: dict[str, int | None] = {name: codec for codec, name in enumerate(CODEC_NAMES)}
_CODECS |= {"producer": None, "uncompressed": 0}


class LogConfig(msgspec.Struct, frozen=True, gc=False):
    """Sizes are in bytes, times in ms; -1: no bound."""

    append: AppendConfig
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    retention_bytes: int = -1
    retention_ms: int = 7 * 24 * 3600 * 1000
    cleanup_deletes: bool = True  # cleanup.policy contains `delete`; otherwise retention is off
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    delete_retention_ms: int = 24 * 3600 * 1000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    file_delete_delay_ms: int = 60_000
    flush_messages: int = 2**63 - 1
    flush_ms: int = 2**63 - 1
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 * 1024 * 1024
    producer_id_expiration_ms: int = 24 * 3600 * 1000

    def roll_time(self, name: str, log_end_offset: int, first_timestamp: int) -> int:
        """Return the greatest timestamp that still fits into the segment (segment.ms).

        The jitter depends only on the log's name and end offset, so that runs repeat.
        """
        if first_timestamp < 0:
            return LONG_MAX
        most_ms = min(self.segment_ms, self.max_compaction_lag_ms) if self.append.compacted else self.segment_ms
        jitter_ms = min(self.segment_jitter_ms, self.segment_ms)
        earlier_ms = crc32(f"{name} {log_end_offset}".encode()) % jitter_ms if jitter_ms else 0
        return first_timestamp + most_ms - earlier_ms


def log_settings(topic: TopicConfig, broker: Config) -> LogConfig:
    """Return the settings of all partitions of a topic; their logs add their names."""
    walked = broker.integer("sluice.record.validation.max.bytes")
    return LogConfig(
        append=AppendConfig(
            max_message_bytes=topic.integer("max.message.bytes"),
            timestamp_type=_TIMESTAMP_TYPES[topic.text("message.timestamp.type")],
            compression=_CODECS[topic.text("compression.type")],
            compression_level=_compression_level(topic),
            max_decompressed_bytes=_decompressed_bytes(topic),
            before_max_ms=topic.integer("message.timestamp.before.max.ms"),
            after_max_ms=topic.integer("message.timestamp.after.max.ms"),
            compacted="compact" in topic.names("cleanup.policy"),
            deep_max_bytes=None if walked < 0 else walked,
        ),
        segment_bytes=topic.segment_bytes(),
        retention_bytes=topic.integer("retention.bytes"),
        retention_ms=topic.integer("retention.ms"),
        cleanup_deletes="delete" in topic.names("cleanup.policy"),
        segment_ms=topic.integer("segment.ms"),
        segment_jitter_ms=topic.integer("segment.jitter.ms"),
        delete_retention_ms=topic.integer("delete.retention.ms"),
        min_cleanable_dirty_ratio=topic.number("min.cleanable.dirty.ratio"),
        min_compaction_lag_ms=topic.integer("min.compaction.lag.ms"),
        max_compaction_lag_ms=topic.integer("max.compaction.lag.ms"),
        file_delete_delay_ms=topic.integer("file.delete.delay.ms"),
        flush_messages=topic.integer("flush.messages"),
        flush_ms=topic.integer("flush.ms"),
        index_interval_bytes=topic.integer("index.interval.bytes"),
        segment_index_bytes=topic.integer("segment.index.bytes"),
        producer_id_expiration_ms=broker.integer("producer.id.expiration.ms"),
    )


def _decompressed_bytes(config: TopicConfig) -> int | None:
    name = "max.decompressed.message.bytes"
    limit = config.integer(name)
    return None if str(limit) == TOPIC_PROPERTIES[name].default else limit


def _compression_level(config: TopicConfig) -> int | None:
    # None: the codec has no levels, or uses its default.
    name = f"compression.{config.text('compression.type')}.level"
    row = TOPIC_PROPERTIES.get(name)
    if row is None:
        return None
    level = config.integer(name)
    return None if str(level) == row.default else level
