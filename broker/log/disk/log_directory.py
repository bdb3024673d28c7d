"""The data directory (`log.dirs`): lock, identity, partitions and recovery points.

Its layout is Kafka's: a directory per partition, `meta.properties` (KIP-858), a lock that Kafka respects too, and
checkpoints of recovery points, log start offsets and high watermarks. Follows Kafka's LogManager and StorageTool.
Different on purpose:
- There is only one directory, formatted by its first start.
- If the disk is full, topics can be deleted (reserve.py).
- If the disk fails, a partition returns KAFKA_STORAGE_ERROR until writes succeed again. Kafka takes the whole directory
  offline until a restart.
"""

import fcntl
import logging
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from errno import EEXIST
from functools import partial
from typing import NamedTuple

import msgspec

from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.partition_log import PartitionLog
from sluice.errors import SluiceError
from sluice.protocol.uuids import printed_uuid, uuid_from_printed

from .directory_storage import DirectoryStorage
from .file_names import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOCK,
    LOG,
    LOG_STARTS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    deleted_directory,
    is_deleted_directory,
    parse_partition,
    stray_directory,
)
from .flusher import Flusher
from .meta_properties import Owner, identify
from .open_files import OpenFiles
from .partition_directory import PartitionDirectory
from .recovery import Checkpoint, restore_log
from .reserve import Reserve
from .text_files import UnreadableFileError, read_checkpoint, read_offsets, write_atomically, write_offsets

log = logging.getLogger("sluice.broker")

_UNIQUE_BYTES = 16


class _Deletion(NamedTuple):
    due_ms: int
    delete: Callable[[], None]


class _OpenLog(NamedTuple):
    log: PartitionLog
    storage: DirectoryStorage


class LogDirectory:
    """An open data directory, locked against other brokers."""

    def __init__(
        self, path: str, owner: Owner, now_ms: Callable[[], int], random_bytes: Callable[[int], bytes]
    ) -> None:
        self.path = os.path.abspath(path)
        self.now_ms = now_ms
        self.flusher = Flusher()
        self._random_bytes = random_bytes
        self._open_files = OpenFiles.of_process()
        self._logs: dict[str, _OpenLog] = {}
        self._deletions: list[_Deletion] = []
        self._lock = -1
        try:
            self._lock = _lock(self.path)
            self.cluster_id, self.directory_id = identify(self.path, owner, random_bytes)
            self._had_clean_stop = self._consume_clean_shutdown()
            self._recovery_points = self._read_offsets(RECOVERY_POINTS)
            self._log_starts = self._read_offsets(LOG_STARTS)
            self._cleaned = self._read_offsets(CLEANED_OFFSETS)
        except OSError as error:
            self.unlock()
            raise SluiceError(f"{error.filename or self.path}: {error.strerror}") from None
        except (SluiceError, UnreadableFileError) as error:
            self.unlock()
            raise SluiceError(str(error)) from None
        self.reserve = Reserve(self.path)
        self.reserve.restore()
        # logs in the saved checkpoint of log start offsets
        self._saved_starts: Collection[str] = {*self._log_starts}
        for name in os.listdir(self.path):
            if is_deleted_directory(name):
                shutil.rmtree(f"{self.path}/{name}", ignore_errors=True)

    def space(self) -> tuple[int, int]:
        """Return the total and the free bytes of the volume (KIP-827)."""
        volume = os.statvfs(self.path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    # Logs

    def partitions(self) -> Iterator[tuple[str, int, str]]:
        """Iterate over topic, index, and topic id (or "")."""
        found = sorted(parsed for name in os.listdir(self.path) if (parsed := parse_partition(name)) is not None)
        for topic, index in found:
            name = f"{topic}-{index}"
            if os.path.isdir(f"{self.path}/{name}"):
                yield topic, index, self._topic_id(name)

    def latest_epoch(self, name: str) -> int:
        try:
            return max((int(epoch) for epoch, _ in read_checkpoint(f"{self.path}/{name}/{LEADER_EPOCHS}")), default=-1)
        except (UnreadableFileError, ValueError):
            return -1  # opening the log reports it

    def open_log(self, name: str, config: LogConfig, topic_id: bytes) -> PartitionLog:
        """Open or create the log of a partition; a directory of its name that belongs to another topic is renamed.

        Raises:
            SluiceError: The name is not that of a partition: it could be the metadata log.
            OSError: The directory cannot be written, or is another partition's on a case-insensitive file system.
        """
        if parse_partition(name) is None:
            expected = "<topic>-<partition> with a valid topic name other than __cluster_metadata"
            raise SluiceError(
                f"{self.path}: invalid name of a partition's directory; expected {expected}, got {name!r}"
            )
        path = f"{self.path}/{name}"
        printed = printed_uuid(topic_id)
        if os.path.isdir(path) and (found := self._topic_id(name)) not in ("", printed):
            self._make_way(name, found)
        os.makedirs(path, exist_ok=True)
        partition_directory = PartitionDirectory(path, config, self._open_files)
        storage = DirectoryStorage(partition_directory, self)
        checkpoint = Checkpoint(self._recovery_points.pop(name, 0), self._log_starts.pop(name, 0), self._had_clean_stop)
        restored = restore_log(name, partition_directory, checkpoint, self.now_ms())
        if not self._topic_id(name):
            storage.save_topic_id(printed)
        partition_log = PartitionLog(name, config, storage, restored)
        partition_log.first_dirty_offset = self._cleaned.pop(name, 0)
        self._logs[name] = _OpenLog(partition_log, storage)
        return partition_log

    def _make_way(self, name: str, found: str) -> None:
        """Remove or rename the directory of another topic, whose id is `found`."""
        path = f"{self.path}/{name}"
        for other, (_, storage) in self._logs.items():
            if other.lower() == name.lower() and os.path.samefile(path, storage.directory.path):
                raise FileExistsError(EEXIST, f"The file system is case-insensitive and has {other}", path)
        if not self.remove_empty(name):
            aside = f"{self.path}/{stray_directory(name, found)}"
            log.warning("renamed the directory of another topic", extra={"directory": path, "renamed": aside})
            os.rename(path, aside)

    def remove_empty(self, name: str) -> bool:
        """Remove a partition's directory if it has no records; return whether it had none."""
        path = f"{self.path}/{name}"
        with os.scandir(path) as files:
            if any(one.name.endswith(LOG) and one.stat().st_size for one in files):
                return False
        shutil.rmtree(path)
        return True

    def forget(self, name: str, delay_ms: int) -> None:
        """Rename a deleted partition's directory; delete it after `delay_ms`."""
        del self._logs[name]
        if name in self._saved_starts:
            self.save_log_starts()  # a topic of the same name starts at 0, also after a crash
        unique = self._random_bytes(_UNIQUE_BYTES).hex()
        renamed = f"{self.path}/{deleted_directory(name, unique)}"
        try:
            os.rename(f"{self.path}/{name}", renamed)
        except OSError as error:
            self._log_error(f"{self.path}/{name}", error)
            return
        self._delete_after(delay_ms, partial(shutil.rmtree, renamed, ignore_errors=True))

    def delete_later(self, paths: Sequence[str], delay_ms: int) -> None:
        self._delete_after(delay_ms, partial(_unlink_all, paths))

    # Periodic work

    def tick(self) -> None:
        if self.flusher.collect():
            self.save_recovery_points()
        now_ms = self.now_ms()
        due = [deletion for deletion in self._deletions if deletion.due_ms <= now_ms]
        self._deletions = [deletion for deletion in self._deletions if deletion.due_ms > now_ms]
        for deletion in due:
            deletion.delete()
        if self.reserve.is_used:
            self.reserve.restore()

    def flush_due(self) -> None:
        """Flush logs whose flush.ms has passed."""
        now_ms = self.now_ms()
        for partition_log, storage in self._logs.values():
            if now_ms - storage.directory.flushed_ms >= partition_log.config.flush_ms:
                storage.directory.flushed_ms = now_ms
                storage.checkpoint(partition_log, partition_log.segments[-1])

    def checkpoint(self) -> None:
        """Flush logs; save start offsets and high watermarks."""
        for partition_log, storage in self._logs.values():
            storage.checkpoint(partition_log, partition_log.segments[-1])
        self.save_log_starts()
        self._save(HIGH_WATERMARKS, {name: one.log.high_watermark for name, one in self._logs.items()})

    def save_recovery_points(self) -> None:
        self._save(RECOVERY_POINTS, {name: one.storage.directory.recovery_point for name, one in self._logs.items()})

    def save_log_starts(self) -> None:
        starts = {
            name: one.log.log_start_offset
            for name, one in self._logs.items()
            if one.log.log_start_offset > one.log.segments[0].base_offset
        }
        self._saved_starts = starts.keys()
        self._save(LOG_STARTS, starts)

    def save_cleaned(self) -> None:
        cleaned = {name: one.log.first_dirty_offset for name, one in self._logs.items() if one.log.first_dirty_offset}
        self._save(CLEANED_OFFSETS, cleaned)

    def close(self) -> None:
        if self._lock < 0:
            return  # already closed
        self.checkpoint()
        self.flusher.finish()
        self.save_recovery_points()
        self.flusher.finish()
        for partition_log, storage in self._logs.values():
            storage.close(partition_log.segments)
        for deletion in self._deletions:
            deletion.delete()
        if all(one.storage.directory.recovery_point == one.log.log_end_offset for one in self._logs.values()):
            content = msgspec.json.encode({"version": 0, "brokerEpoch": -1})
            try:
                write_atomically(f"{self.path}/{CLEAN_SHUTDOWN}", content, sync=True)
            except OSError as error:  # the next start recovers, as after a crash
                self._log_error(f"{self.path}/{CLEAN_SHUTDOWN}", error)
        self.unlock()

    def unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # Steps

    def _consume_clean_shutdown(self) -> bool:
        path = f"{self.path}/{CLEAN_SHUTDOWN}"
        if not os.path.exists(path):
            return False
        os.unlink(path)
        return True

    def _read_offsets(self, name: str) -> dict[str, int]:
        try:
            return read_offsets(f"{self.path}/{name}")
        except UnreadableFileError as error:
            log.warning("ignoring an unreadable checkpoint", extra={"reason": str(error)})
            self._had_clean_stop = False
            return {}

    def _topic_id(self, name: str) -> str:
        path = f"{self.path}/{name}/{PARTITION_METADATA}"
        try:
            with open(path, encoding="utf-8") as file:
                lines = dict(line.split(": ", 1) for line in file.read().splitlines() if ": " in line)
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError:
            lines = {}
        topic_id = lines.get("topic_id", "")
        raw = uuid_from_printed(topic_id)
        if raw is None or printed_uuid(raw) != topic_id:  # it may become part of a directory name
            log.warning("rewriting an invalid topic id", extra={"file": path})
            return ""
        return topic_id

    def _delete_after(self, delay_ms: int, delete: Callable[[], None]) -> None:
        self._deletions.append(_Deletion(self.now_ms() + delay_ms, delete))

    def _save(self, name: str, offsets: Mapping[str, int]) -> None:
        """Save in the flush thread: each checkpoint waits for the disk."""
        self.flusher.write(partial(self._write, f"{self.path}/{name}", offsets))

    def _write(self, path: str, offsets: Mapping[str, int]) -> None:
        try:
            write_offsets(path, offsets)
        except OSError as error:
            self._log_error(path, error)

    def _log_error(self, path: str, error: OSError) -> None:
        log.error("cannot write to the data directory", extra={"file": path, "reason": error.strerror})


def _lock(path: str) -> int:
    if os.path.exists(path) and not os.path.isdir(path):
        raise SluiceError(f"{path}: log.dirs is a file; expected a directory")
    os.makedirs(path, exist_ok=True)
    handle = os.open(f"{path}/{LOCK}", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kind of lock that Java uses
    except OSError:
        os.close(handle)
        raise SluiceError(f"{path}: in use by another broker, which has locked {LOCK}") from None
    return handle


def _unlink_all(paths: Sequence[str]) -> None:
    for path in paths:
        if os.path.exists(path):
            os.unlink(path)
