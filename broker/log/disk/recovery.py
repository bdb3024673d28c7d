"""Recovery of a partition's log from its directory: Kafka's LogLoader.

Records before the recovery point were validated and flushed: they are not read. After a clean shutdown, the recovery
point is the log end offset, and only the end of the active segment, after its last index entry, is scanned. After a
crash, everything from the recovery point on is scanned: each batch must be complete, have a valid checksum and
ascending offsets. At the first invalid batch, the log is truncated.

The newest valid snapshot of the producer state is loaded, and later batches are replayed. Leader epochs come from their
checkpoint and the scan.
"""

import logging
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from sluice.broker.log.leader_epochs import LeaderEpochs
from sluice.broker.log.log_storage import RestoredLog
from sluice.broker.log.producer_state import AbortedTransaction, ProducerEntry, ProducerState
from sluice.protocol.records.batch import BatchHeader
from sluice.protocol.records.invalid import InvalidRecords

from .file_names import (
    CLEANED,
    DELETED,
    INDEX,
    LEADER_EPOCHS,
    LOG,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    parse_file_name,
)
from .file_records import CorruptSegmentError
from .file_segment import FileSegment
from .partition_directory import PartitionDirectory
from .producer_snapshot import read_snapshot
from .segment_index import CorruptIndexError, SegmentIndex, read_transaction_index
from .segment_scan import Listener, Scanned, scan
from .text_files import UnreadableFileError, read_checkpoint

log = logging.getLogger("sluice.broker")


class Checkpoint(NamedTuple):
    recovery_point: int
    log_start_offset: int
    had_clean_stop: bool


class _Files(NamedTuple):
    logs: list[int]
    snapshots: list[int]
    transaction_indexes: set[int]


def restore_log(name: str, directory: PartitionDirectory, checkpoint: Checkpoint, now_ms: int) -> RestoredLog:
    files = _tidy(directory)
    segments = _segments(directory, files.logs)
    recovery = _Recovery(name, directory, files, segments, checkpoint)
    recovery.run()
    end_offset = segments[-1].next_offset if segments else checkpoint.log_start_offset
    if end_offset < checkpoint.recovery_point:
        log.warning(
            "log ends before its recovery point; flushed records are missing",
            extra={"partition": name, "end": end_offset, "recovery_point": checkpoint.recovery_point},
        )
    if end_offset < checkpoint.log_start_offset:
        log.warning(
            "log ends before its start; removing it",
            extra={"partition": name, "end": end_offset, "start": checkpoint.log_start_offset},
        )
        for segment in segments:
            remove_segment(segment)
        segments.clear()
        end_offset = checkpoint.log_start_offset
    if not segments:
        segments.append(FileSegment.create(directory, end_offset, directory.config.segment_bytes, now_ms))
    segments[-1].accept(directory.config.segment_bytes)
    start_offset = max(checkpoint.log_start_offset, segments[0].base_offset)
    recovery.epochs.truncate_from_end(end_offset)
    recovery.epochs.truncate_from_start(start_offset)
    directory.recovery_point = end_offset if checkpoint.had_clean_stop else min(checkpoint.recovery_point, end_offset)
    return RestoredLog(segments, start_offset, end_offset, recovery.producers, recovery.epochs)


def remove_segment(segment: FileSegment) -> None:
    segment.close()
    for kind in SEGMENT_SUFFIXES:
        _remove(segment.path(kind))


def _tidy(directory: PartitionDirectory) -> _Files:
    """Finish interrupted replacements and deletions; remove stray indexes."""
    found = _listed(directory)
    unfinished = {offset for offset, suffix in found if suffix.endswith(CLEANED)}
    swapped = sorted(offset for offset, suffix in found if suffix == LOG + SWAP)
    valid = [offset for offset in swapped if not unfinished or offset < min(unfinished)]
    for offset, suffix in found:
        if suffix.endswith((CLEANED, DELETED)) or (suffix.endswith(SWAP) and offset not in valid):
            _remove(f"{directory.path}/{file_name(offset, suffix)}")
    for offset in valid:
        _finish_replacement(directory, offset, found)
    if valid:
        found = _listed(directory)
    logs = {offset for offset, suffix in found if suffix == LOG}
    for offset, suffix in found:
        if suffix in (INDEX, TIME_INDEX, TXN_INDEX) and offset not in logs:
            log.warning("removing an index without a segment", extra={"file": file_name(offset, suffix)})
            _remove(f"{directory.path}/{file_name(offset, suffix)}")
    return _Files(
        sorted(logs),
        sorted(offset for offset, suffix in found if suffix == SNAPSHOT),
        {offset for offset, suffix in found if suffix == TXN_INDEX and offset in logs},
    )


def _listed(directory: PartitionDirectory) -> list[tuple[int, str]]:
    return [parsed for name in os.listdir(directory.path) if (parsed := parse_file_name(name)) is not None]


def _finish_replacement(directory: PartitionDirectory, offset: int, found: Sequence[tuple[int, str]]) -> None:
    cleaned = FileSegment(
        directory, offset, offset, os.path.getsize(f"{directory.path}/{file_name(offset, LOG)}{SWAP}"), 0, SWAP
    )
    cleaned.recovered(cleaned.size, cleaned.rebuilt_index())
    for other, suffix in found:
        if suffix in SEGMENT_SUFFIXES and offset <= other < max(cleaned.next_offset, offset + 1):
            _remove(f"{directory.path}/{file_name(other, suffix)}")
    cleaned.close()
    for kind in SEGMENT_SUFFIXES:
        path = f"{directory.path}/{file_name(offset, kind)}"
        if os.path.exists(path + SWAP):
            os.replace(path + SWAP, path)


def _segments(directory: PartitionDirectory, bases: Sequence[int]) -> list[FileSegment]:
    found = []
    for base_offset, following in pairwise([*bases, -1]):
        status = os.stat(f"{directory.path}/{file_name(base_offset, LOG)}")
        next_offset = base_offset if following < 0 else following
        found.append(FileSegment(directory, base_offset, next_offset, status.st_size, status.st_mtime_ns // 1_000_000))
    return found


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return  # already removed


def _replay(producers: ProducerState, segment: FileSegment, header: BatchHeader, batch: memoryview) -> None:
    try:
        producers.replay(header, batch)
    except InvalidRecords as error:
        extra = {"file": segment.path(LOG), "offset": header.base_offset, "reason": error.message}
        log.warning("skipping a damaged transaction marker", extra=extra)


class _Recovery:
    def __init__(
        self,
        name: str,
        directory: PartitionDirectory,
        files: _Files,
        segments: list[FileSegment],
        checkpoint: Checkpoint,
    ) -> None:
        self.producers = ProducerState(name)
        self.epochs = LeaderEpochs()
        self._name = name
        self._directory = directory
        self._files = files
        self._segments = segments
        self._checkpoint = checkpoint
        self._replay_from = 0  # the snapshot covers everything before it

    def run(self) -> None:
        self._read_epochs()
        if not self._segments:
            return
        if self._checkpoint.had_clean_stop and self._is_end_intact():
            self._load_producers(self._segments[-1].next_offset)
            self._replay(self._segments)
            self._remove_old_snapshots(self._segments[-1].next_offset)
            return
        # A corrupt end makes the whole segment untrusted.
        at_most = self._segments[-1].base_offset if self._checkpoint.had_clean_stop else 2**63 - 1
        trusted = min(self._checkpoint.recovery_point, at_most)
        self._load_producers(trusted)
        first = max(0, bisect_right(self._segments, trusted, key=lambda segment: segment.base_offset) - 1)
        self._replay(self._segments[:first])
        for number in range(first, len(self._segments)):
            if not self._recover(self._segments[number], trusted):
                self._remove_from(number + 1)
                break
        end_offset = self._segments[-1].next_offset
        if self._replay_from > end_offset:  # trusted records are missing
            self.producers = ProducerState(self._name)
            self._replay_from = 0
            self._load_producers(end_offset)
            self._replay(self._segments)
        self._remove_old_snapshots(end_offset)

    def _is_end_intact(self) -> bool:
        active = self._segments[-1]
        try:
            active.recovered(active.size, active.index())
        except CorruptSegmentError as error:
            log.warning("corrupt end of log after a clean shutdown", extra={"reason": str(error)})
            return False
        return True

    def _read_epochs(self) -> None:
        path = f"{self._directory.path}/{LEADER_EPOCHS}"
        try:
            for epoch, start_offset in read_checkpoint(path):
                self.epochs.assign(int(epoch), int(start_offset))
        except (UnreadableFileError, ValueError) as error:
            log.warning("rebuilding the leader epochs", extra={"file": path, "reason": str(error)})
            self._checkpoint = self._checkpoint._replace(recovery_point=0, had_clean_stop=False)

    def _load_producers(self, end_offset: int) -> None:
        producers: list[tuple[int, ProducerEntry]] = []
        for offset in reversed(self._files.snapshots):
            if offset > end_offset:
                continue
            path = f"{self._directory.path}/{file_name(offset, SNAPSHOT)}"
            try:
                producers = read_snapshot(path)
            except UnreadableFileError as error:
                log.warning("ignoring an unreadable producer snapshot", extra={"reason": str(error)})
                _remove(path)
                continue
            self._replay_from = offset
            break
        self.producers.restore(producers, self._aborted())

    def _aborted(self) -> Iterator[AbortedTransaction]:
        for offset in sorted(self._files.transaction_indexes):
            if offset >= self._replay_from:
                continue
            path = f"{self._directory.path}/{file_name(offset, TXN_INDEX)}"
            try:
                aborted = read_transaction_index(path)
            except CorruptIndexError as error:
                log.warning("rebuilding the transaction index", extra={"reason": str(error)})
                aborted = self._aborted_in(offset)
            yield from (one for one in aborted if one.last_offset < self._replay_from)

    def _aborted_in(self, base_offset: int) -> list[AbortedTransaction]:
        state = ProducerState("")
        segment = next(one for one in self._segments if one.base_offset == base_offset)
        for header, batch in segment.batches_at(0):
            _replay(state, segment, header, batch)
        return state.aborted_between(0, 2**63 - 1)

    def _replay(self, segments: Sequence[FileSegment]) -> None:
        for segment in segments:
            if segment.next_offset > self._replay_from:
                for header, batch in segment.batches(self._replay_from):
                    _replay(self.producers, segment, header, batch)

    def _recover(self, segment: FileSegment, trusted: int) -> bool:
        index = self._trusted_index(segment, trusted)
        position = min(
            index.last_position(), index.position_before(max(0, min(self._replay_from, trusted) - segment.base_offset))
        )
        listener = Listener(self._replay_batch, self._assign_epoch)
        found = scan(segment, position, trusted, index, self._directory.index_interval_bytes, listener)
        if found.problem:
            self._cut(segment, found)
        segment.recovered(found.size, index)
        if segment is not self._segments[-1]:
            segment.filled()
            self._directory.unflushed.append(segment)
        segment.save_index()
        return not found.problem

    def _replay_batch(self, header: BatchHeader, batch: memoryview) -> None:
        if header.base_offset >= self._replay_from:
            self.producers.replay(header, batch)

    def _assign_epoch(self, epoch: int, start_offset: int) -> None:
        if epoch > self.epochs.latest:
            self.epochs.assign(epoch, start_offset)

    def _trusted_index(self, segment: FileSegment, trusted: int) -> SegmentIndex:
        try:
            index = SegmentIndex.load(segment.path(INDEX), segment.path(TIME_INDEX), segment.size)
        except (CorruptIndexError, FileNotFoundError):
            return SegmentIndex()  # normal after a crash: rebuilt without a log line
        index.truncate_to(max(0, trusted - segment.base_offset))
        return index

    def _cut(self, segment: FileSegment, found: Scanned) -> None:
        path = segment.path(LOG)
        extra = {"file": path, "byte": found.size, "offset": found.next_offset, "reason": found.problem}
        log.warning("truncating the log", extra={**extra, "cut_bytes": segment.size - found.size})
        os.truncate(path, found.size)

    def _remove_from(self, number: int) -> None:
        for segment in self._segments[number:]:
            log.warning(
                "removing a segment after the truncation", extra={"file": segment.path(LOG), "bytes": segment.size}
            )
            remove_segment(segment)
        del self._segments[number:]

    def _remove_old_snapshots(self, end_offset: int) -> None:
        kept = {segment.base_offset for segment in self._segments} | {self._replay_from}
        for offset in self._files.snapshots:
            if offset not in kept or offset > end_offset:
                _remove(f"{self._directory.path}/{file_name(offset, SNAPSHOT)}")
        if self._replay_from in self._files.snapshots and self._replay_from != self._segments[-1].base_offset:
            self._directory.snapshot = self._replay_from
