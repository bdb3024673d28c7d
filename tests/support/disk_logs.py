"""Logs in a directory: helpers that write them, stop or crash, and reopen them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

from sluice.broker.log.disk.log_directory import LogDirectory
from sluice.broker.log.disk.meta_properties import Owner
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.partition_log import PartitionLog
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.build import build_batch, build_transaction_marker
from sluice.protocol.records.log_validator import COORDINATOR, AppendConfig
from sluice.protocol.records.record import Record

NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
# Small, so that a test has several segments and index entries.
CONFIG = LogConfig(AppendConfig(), segment_bytes=1000, index_interval_bytes=100)


class Disk:
    """A data directory with a manual clock."""

    OWNER = Owner("c2x1aWNlLWJyb2tlci0wMA", 1, adopts_cluster_id=False)

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now_ms = NOW_MS
        self.directory = self._opened()

    def _opened(self) -> LogDirectory:
        return LogDirectory(str(self.path), self.OWNER, lambda: self.now_ms, Random(1).randbytes)

    def log(self, name: str = "t-0", config: LogConfig = CONFIG, topic_id: bytes = TOPIC_ID) -> PartitionLog:
        log = self.directory.open_log(name, config, topic_id)
        log.has_followers = False
        return log

    def stop(self) -> None:
        """Stop cleanly and start again."""
        self.directory.close()
        self.directory = self._opened()

    def crash(self) -> None:
        """Lose the data in memory and start again."""
        self.directory.flusher.finish()
        self.directory.unlock()
        self.directory = self._opened()

    def file(self, name: str, partition: str = "t-0") -> Path:
        return self.path / partition / name


def batch(
    values: int | Iterable[bytes] = 1,
    *,
    timestamp: int = NOW_MS,
    timestamps: Sequence[int] = (),
    producer_id: int = -1,
    producer_epoch: int = 0,
    sequence: int = 0,
    transactional: bool = False,
    compression: int = 0,
) -> memoryview:
    """Return a batch as a producer sends it; `values` may be a number of records, all or each with its timestamp."""
    values = [b"value"] * values if isinstance(values, int) else list(values)
    times = timestamps or [timestamp] * len(values)
    records = [Record(offset, times[offset], b"key", value) for offset, value in enumerate(values)]
    if producer_id == -1:
        return memoryview(bytearray(build_batch(records, compression=compression)))
    built = build_batch(
        records,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        transactional=transactional,
        compression=compression,
    )
    return memoryview(bytearray(built))


def append(log: PartitionLog, data: memoryview, leader_epoch: int = 0) -> int:
    result = log.append(data, NOW_MS, leader_epoch)
    assert result.error_code == ErrorCode.NONE, result.reason
    return result.base_offset


def marker(control_type: int, producer_id: int, coordinator_epoch: int = 0) -> memoryview:
    """Return a marker that ends a transaction."""
    data = build_transaction_marker(
        control_type,
        offset=0,
        timestamp=NOW_MS,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=coordinator_epoch,
    )
    return memoryview(bytearray(data))


def end_transaction(log: PartitionLog, control_type: int, producer_id: int) -> None:
    result = log.append(marker(control_type, producer_id), NOW_MS, 0, COORDINATOR)
    assert result.error_code == ErrorCode.NONE, result.reason


def batches_in(log: PartitionLog, offset: int = 0) -> list[tuple[int, int]]:
    """Return first and last offset of each batch from `offset` on."""
    read = log.read(max(offset, log.log_start_offset), 10**9, log.high_watermark, True)
    assert read.error_code == ErrorCode.NONE
    return [(header.base_offset, header.last_offset) for _, header in iter_batches(b"".join(read.parts))]
