"""One partition's log in a directory: segments, producer snapshots and leader epochs, in Kafka's files.

Follows Kafka's LocalLog and the file operations of UnifiedLog. If a snapshot, epochs or an index cannot be written, the
error is only logged: the next start rebuilds the file.

Requests flush only if flush.messages requires it; another thread flushes full segments.
"""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from sluice.broker.log.leader_epochs import LeaderEpochs
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.log_storage import LogSegment, StoredLog

from .file_names import (
    CLEANED,
    DELETED,
    INDEX,
    LEADER_EPOCHS,
    LOG,
    PARTITION_METADATA,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
)
from .file_segment import MAX_POSITION, FileSegment
from .flusher import Flusher
from .partition_directory import NO_SNAPSHOT, PartitionDirectory
from .producer_snapshot import encode_snapshot
from .segment_index import write_transaction_index
from .text_files import overwrite_checkpoint, write_atomically

log = logging.getLogger("sluice.broker")


class StorageHost(Protocol):
    @property
    def now_ms(self) -> Callable[[], int]: ...
    @property
    def flusher(self) -> Flusher: ...
    def save_recovery_points(self) -> None: ...
    def save_cleaned(self) -> None: ...
    def forget(self, name: str, delay_ms: int) -> None: ...
    def delete_later(self, paths: Sequence[str], delay_ms: int) -> None: ...


class DirectoryStorage:
    def __init__(self, directory: PartitionDirectory, host: StorageHost) -> None:
        self.directory = directory
        self._host = host
        self._is_forgotten = False  # the directory has another name and will be deleted

    # LogStorage

    def configure(self, config: LogConfig) -> None:
        self.directory.configure(config)

    def save_epochs(self, epochs: LeaderEpochs) -> None:
        if self._is_forgotten:
            return
        lines = (f"{epoch} {start_offset}" for epoch, start_offset in epochs)
        path = f"{self.directory.path}/{LEADER_EPOCHS}"
        self._try(path, partial(overwrite_checkpoint, path, lines))

    def first_segments(self, log: StoredLog, base_offset: int) -> Sequence[LogSegment]:
        return (FileSegment.create(self.directory, base_offset, log.config.segment_bytes, self._host.now_ms()),)

    def begin_segment(self, log: StoredLog, base_offset: int, size: int, room: int, now_ms: int) -> LogSegment:
        segment = FileSegment.create(self.directory, base_offset, max(size, log.config.segment_bytes), now_ms)
        self._save_snapshot(log, base_offset)
        if self.directory.snapshot == base_offset:
            self.directory.snapshot = NO_SNAPSHOT  # the snapshot now belongs to the segment
        return segment

    def largest_segment_bytes(self, log: StoredLog) -> int:
        return min(log.config.segment_bytes, MAX_POSITION)

    def segment_filled(self, log: StoredLog, segment: LogSegment) -> None:
        assert isinstance(segment, FileSegment)
        segment.filled()
        segment.capacity = segment.size
        self._save_indexes(log, segment)
        if segment not in self.directory.unflushed:  # already added if creating the next segment failed before
            self.directory.unflushed.append(segment)
        self._flush(segment, partial(self._flushed, segment))

    def begin_cleaned(self, log: StoredLog, base_offset: int, size: int, now_ms: int) -> LogSegment:
        return FileSegment.create(self.directory, base_offset, MAX_POSITION, now_ms, CLEANED)

    def save_cleaned(self, cleaned: LogSegment, then: Callable[[], None]) -> None:
        assert isinstance(cleaned, FileSegment)
        self._host.flusher.flush([cleaned.duplicate_handle()], then)

    def replace(self, log: StoredLog, old: Sequence[LogSegment], new: LogSegment) -> None:
        assert isinstance(new, FileSegment)
        new.filled()
        new.capacity = new.size
        self._save_indexes(log, new)
        os.utime(new.path(LOG), ns=(new.last_append_ms * 1_000_000,) * 2)
        self._rename(new, SWAP)
        for segment in old:
            self._delete_segment(segment)
            if segment.base_offset != new.base_offset:
                self._remove_snapshot(segment.base_offset)
        self._rename(new, "")

    def records_deleted(self, log: StoredLog) -> None:
        """Do nothing: the log start offset is stored now and then, as in Kafka."""

    def delete(self, segment: LogSegment) -> None:
        assert isinstance(segment, FileSegment)
        if segment.suffix == CLEANED:  # it has not replaced anything yet
            segment.close()
            for kind in SEGMENT_SUFFIXES:
                with suppress(FileNotFoundError):  # the partition may be deleted
                    os.unlink(segment.path(kind))
            return
        self._delete_segment(segment)
        self._remove_snapshot(segment.base_offset)

    def truncated(self, log: StoredLog) -> None:
        self.directory.recovery_point = min(self.directory.recovery_point, log.log_end_offset)
        if self.directory.snapshot > log.log_end_offset:
            self._remove_snapshot(self.directory.snapshot)
            self.directory.snapshot = NO_SNAPSHOT
        self._host.save_recovery_points()
        self._host.save_cleaned()

    def failed(self, error: OSError) -> str:
        return self.directory.failed(error)

    def forget(self, log: StoredLog, segments: Sequence[LogSegment]) -> None:
        self.directory.unflushed.clear()
        self.close(segments)
        self._is_forgotten = True
        self._host.forget(log.name, log.config.file_delete_delay_ms)

    # For the log directory

    def save_topic_id(self, printed: str) -> None:
        path = f"{self.directory.path}/{PARTITION_METADATA}"
        write_atomically(path, f"version: 0\ntopic_id: {printed}", sync=False)

    def checkpoint(self, log: StoredLog, active: LogSegment) -> None:
        """Flush everything in the other thread, then move the recovery point to the log end offset of this call."""
        end_offset = log.log_end_offset
        if end_offset <= self.directory.recovery_point:
            return
        assert isinstance(active, FileSegment)
        self._save_indexes(log, active)
        if end_offset != active.base_offset:
            before, self.directory.snapshot = self.directory.snapshot, end_offset
            self._save_snapshot(log, end_offset)
            if before not in (NO_SNAPSHOT, end_offset):
                self._remove_snapshot(before)
        self._flush(active, partial(self._reached, end_offset))

    def close(self, segments: Sequence[LogSegment]) -> None:
        for segment in segments:
            assert isinstance(segment, FileSegment)
            segment.close()

    # Steps

    def _save_snapshot(self, log: StoredLog, offset: int) -> None:
        path = f"{self.directory.path}/{file_name(offset, SNAPSHOT)}"
        self._try(path, partial(write_atomically, path, encode_snapshot(log.producers), sync=False))

    def _remove_snapshot(self, offset: int) -> None:
        path = f"{self.directory.path}/{file_name(offset, SNAPSHOT)}"
        if os.path.exists(path):
            self._try(path, partial(os.unlink, path))

    def _save_indexes(self, log: StoredLog, segment: FileSegment) -> None:
        self._try(segment.path(INDEX), segment.save_index)
        aborted = log.producers.aborted_between(segment.base_offset, segment.next_offset)
        path = segment.path(TXN_INDEX)
        self._try(path, partial(write_transaction_index, path, aborted))

    def _flush(self, segment: FileSegment, then: Callable[[], None]) -> None:
        handles: list[int] = []
        try:
            handles.append(segment.duplicate_handle())
            paths = [path for kind in (INDEX, TIME_INDEX, TXN_INDEX) if os.path.exists(path := segment.path(kind))]
            for path in [*paths, self.directory.path]:
                handles.append(os.open(path, os.O_RDONLY))  # noqa: PERF401  (a failure closes the earlier ones)
        except OSError as error:
            for handle in handles:
                os.close(handle)
            self._log_error(segment.path(LOG), error)
            return
        self._host.flusher.flush(handles, then)

    def _flushed(self, segment: FileSegment) -> None:
        if segment in self.directory.unflushed:
            self.directory.unflushed.remove(segment)
        if not self.directory.unflushed:
            self._reached(segment.next_offset)

    def _reached(self, offset: int) -> None:
        if not self.directory.unflushed:
            self.directory.recovery_point = max(self.directory.recovery_point, offset)

    def _delete_segment(self, segment: LogSegment) -> None:
        assert isinstance(segment, FileSegment)
        if segment in self.directory.unflushed:
            self.directory.unflushed.remove(segment)
        # Readers, such as the cleaner, may still use it, so it is only renamed.
        self._try(segment.path(LOG), partial(self._rename, segment, DELETED))
        segment.close()
        paths = [segment.path(kind) for kind in SEGMENT_SUFFIXES]
        self._host.delete_later(paths, self.directory.config.file_delete_delay_ms)

    def _rename(self, segment: FileSegment, suffix: str) -> None:
        before = {kind: segment.path(kind) for kind in SEGMENT_SUFFIXES}
        segment.suffix = suffix
        for kind, path in before.items():
            if os.path.exists(path):
                os.replace(path, segment.path(kind))

    def _try(self, path: str, action: Callable[[], None]) -> None:
        try:
            action()
        except OSError as error:
            self._log_error(path, error)

    def _log_error(self, path: str, error: OSError) -> None:
        log.error("cannot write to the data directory", extra={"file": path, "reason": error.strerror})
