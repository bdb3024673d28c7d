"""The log of all durable metadata: topics, partitions, configs, quotas, ACLs, credentials.

It has Kafka's format (KIP-500, KIP-595, KIP-630): `__cluster_metadata-0` in the data directory, as a KRaft controller
with one voter writes it.

A change takes effect only after its records were appended. `append` returns when they are on disk (Kafka's leader
flushes too). All records of a call are in one batch, so a crash keeps all or none. If the disk accepts only a part, the
caller returns KAFKA_STORAGE_ERROR.

A start loads the newest snapshot and the records since (recovery.py) into the image, and each append updates it.

Each start begins a new epoch of the quorum with a leader change, as in Kafka, and aborts an open transaction.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from errno import ENOSPC
from pathlib import Path

from sluice.errors import SluiceError
from sluice.protocol.errors import ErrorCode
from sluice.protocol.metadata.control import LeaderChangeMessage, Voter
from sluice.protocol.metadata.log import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.metadata.settings import FeatureLevelRecord

from .batches import METADATA_TRANSACTIONS, BatchStart, control_batch, metadata_batch
from .files import (
    METADATA_DIRECTORY,
    QuorumState,
    read_quorum_epoch,
    sync_directory,
    write_leader_epochs,
    write_partition_metadata,
    write_quorum_state,
)
from .image import METADATA_VERSION, MetadataImage
from .recovery import Cut, Recovered, recover, segment_name
from .snapshot import SnapshotId, snapshots_in, write_snapshot

log = logging.getLogger("sluice.broker")

# Reading this many records takes about 100 ms.
_RECORDS_BEFORE_SNAPSHOT = 10_000
_RECORDS_BEFORE_SNAPSHOT_AT_STOP = 1_000


class MetadataLog:
    def __init__(
        self,
        directory: Path,
        node_id: int,
        recovered: Recovered,
        now_ms: Callable[[], int],
        make_room: Callable[[], bool],
    ) -> None:
        self.image: MetadataImage = recovered.image
        self.end_offset = recovered.end_offset
        self._directory = directory
        self._node_id = node_id
        self._now_ms = now_ms
        self._voters = recovered.voters
        self._epoch = recovered.epoch
        self._epochs = recovered.epochs
        self._last_append_ms = recovered.last_append_ms
        self._records_since_snapshot = recovered.records_since_snapshot
        self._start_offset = recovered.start_offset
        self._segment = -1
        self._segment_bytes = 0
        self._is_broken = False
        self._make_room = make_room

    def append(self, messages: Sequence[MetadataMessage]) -> ErrorCode:
        if self._is_broken:
            return ErrorCode.KAFKA_STORAGE_ERROR
        try:
            self._append(messages)
        except OSError as error:
            log.error("metadata not written", extra={"directory": str(self._directory), "reason": error.strerror})
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self._records_since_snapshot > _RECORDS_BEFORE_SNAPSHOT:
            self.compact()
        return ErrorCode.NONE

    def compact(self) -> None:
        snapshot = SnapshotId(self.end_offset, self._epoch)
        self._records_since_snapshot = 0
        try:
            write_snapshot(self._directory, snapshot, self.image, self._voters, self._last_append_ms)
            self._begin_segment()
            self._epochs = [(self._epoch, self.end_offset)]
            write_leader_epochs(self._directory, self._epochs)
            self._delete_before(snapshot)
        except OSError as error:
            log.error("metadata snapshot failed", extra={"directory": str(self._directory), "reason": error.strerror})

    def close(self) -> None:
        if self._records_since_snapshot > _RECORDS_BEFORE_SNAPSHOT_AT_STOP and not self._is_broken:
            self.compact()
        os.close(self._segment)

    def begin(self, recovered: Recovered, features: Mapping[str, int]) -> None:
        """Remove what recovery cut off and start a new epoch; `features` are the feature levels of a new cluster."""
        if recovered.segment is None or recovered.log_end_offset < recovered.end_offset:
            self._begin_segment()
        else:
            if recovered.cut is not None:
                self._remove(recovered.cut)
            self._segment = os.open(recovered.segment, os.O_WRONLY | os.O_APPEND)
            self._segment_bytes = recovered.segment_bytes
        self._begin_epoch()
        if self.image.in_transaction:
            self._append([AbortTransactionRecord(reason="Controller failover")])
        if recovered.log_end_offset == 0 and not self._start_offset:
            self._bootstrap(features)

    def _remove(self, cut: Cut) -> None:
        for path in cut.later_segments:
            path.unlink()
        os.truncate(cut.path, cut.position)
        fields = {"file": str(cut.path), "position": cut.position, "bytes": cut.size - cut.position}
        log.warning("truncated the metadata log", extra={**fields, "reason": cut.reason})

    def _bootstrap(self, features: Mapping[str, int]) -> None:
        records: list[MetadataMessage] = [*self.image.records()]
        if METADATA_VERSION not in self.image.features:
            records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in features.items()]
            self.image.replay(records[0])  # metadata.version determines how the rest is written
        if self.image.features[METADATA_VERSION] >= METADATA_TRANSACTIONS:
            records = [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]
        self._append(records)

    def _begin_epoch(self) -> None:
        self._epoch = max(self._epoch, read_quorum_epoch(self._directory)) + 1
        write_quorum_state(self._directory, QuorumState(self._node_id, self._epoch, self._voters.kraft_version))
        write_partition_metadata(self._directory)
        voters = [Voter(voter_id=self._node_id)]
        change = LeaderChangeMessage(leader_id=self._node_id, voters=voters, granting_voters=voters)
        self._epochs.append((self._epoch, self.end_offset))
        # Kafka always reads and writes version 0, whatever the first field contains.
        self._write(control_batch([change], change.version, self._batch_start()), 1)
        write_leader_epochs(self._directory, self._epochs)

    def _append(self, messages: Sequence[MetadataMessage]) -> None:
        level = self.image.features.get(METADATA_VERSION, 0)
        self._write(metadata_batch(messages, level, self._batch_start()), len(messages))
        for message in messages:
            self.image.replay(message)

    def _batch_start(self) -> BatchStart:
        return BatchStart(self.end_offset, self._epoch, self._now_ms())

    def _write(self, batch: bytes, records: int) -> None:
        try:
            self._write_whole(batch)
        except OSError as error:
            if error.errno != ENOSPC or self._is_broken or not self._make_room():
                raise
            self._write_whole(batch)
        self._segment_bytes += len(batch)
        self.end_offset += records
        self._records_since_snapshot += records
        self._last_append_ms = self._now_ms()

    def _write_whole(self, batch: bytes) -> None:
        try:
            written = os.write(self._segment, batch)
            while written < len(batch):  # a full disk raises only at the next write
                written += os.write(self._segment, batch[written:])
            os.fdatasync(self._segment)
        except OSError:
            self._truncate()
            raise

    def _truncate(self) -> None:
        try:
            os.ftruncate(self._segment, self._segment_bytes)
        except OSError:
            self._is_broken = True  # the next start would find a damaged log

    def _begin_segment(self) -> None:
        path = self._directory / segment_name(self.end_offset)
        segment = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o644)
        sync_directory(self._directory)
        if self._segment >= 0:
            os.close(self._segment)
        self._segment, self._segment_bytes = segment, 0
        self._start_offset = self.end_offset

    def _delete_before(self, snapshot: SnapshotId) -> None:
        for path in self._directory.iterdir():
            offset = path.name[:20]
            is_numbered = offset.isdecimal() and path.name != snapshot.file_name
            if is_numbered and int(offset) < snapshot.end_offset:
                path.unlink()
        for older in snapshots_in(self._directory)[1:]:
            (self._directory / older.file_name).unlink()


def open_metadata_log(
    log_dir: str,
    node_id: int,
    features: Mapping[str, int],
    now_ms: Callable[[], int],
    *,
    make_room: Callable[[], bool] = lambda: False,
    truncate_damaged: bool = False,
) -> MetadataLog:
    """Open or create the metadata log of a data directory, ready to append.

    Args:
        log_dir: The data directory.
        node_id: The id of the controller.
        features: The feature levels of a new cluster, metadata.version first.
        now_ms: The wall clock.
        make_room: Called when the disk is full; returns whether a write may succeed now.
        truncate_damaged: Whether to remove everything after damage.

    Raises:
        SluiceError: The log is not intact or cannot be written.
    """
    directory = Path(log_dir, METADATA_DIRECTORY)
    try:
        directory.mkdir(exist_ok=True)
        recovered = recover(directory, truncate_damaged=truncate_damaged)
        metadata_log = MetadataLog(directory, node_id, recovered, now_ms, make_room)
        metadata_log.begin(recovered, features)
    except OSError as error:
        raise SluiceError(f"{error.filename or directory}: {error.strerror}") from None
    return metadata_log
