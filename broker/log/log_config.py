"""What a topic's configuration says about its partitions' logs. Names and defaults are Kafka's."""

import msgspec

from sluice.config_values import LONG_MAX
from sluice.protocol.records.log_validator import AppendConfig

# Largest piece of memory a log takes at once, and lets go of at once; Kafka's 1 GiB is for files. A larger one would be
# more than 1/16 of a 64 MiB budget, of a smaller one there would be more to look through.
DEFAULT_SEGMENT_BYTES = 4 * 1024 * 1024


class LogConfig(msgspec.Struct, frozen=True, gc=False):
    """One topic's, as plain values: sizes in bytes, times in ms, -1 for no bound."""

    append: AppendConfig
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    retention_bytes: int = -1
    retention_ms: int = 7 * 24 * 3600 * 1000
    cleanup_deletes: bool = True  # cleanup.policy has `delete`; without it retention takes nothing
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
