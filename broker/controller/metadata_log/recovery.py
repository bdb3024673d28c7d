"""Recovery of a metadata log: the newest snapshot, then the records appended since.

Follows KafkaRaftLog.createLog and recoverSnapshots, LogLoader, MetadataBatchLoader. Unreadable data at the end of the
last segment was torn by a crash and is truncated. Anywhere else, acknowledged state would be lost, so the start fails
with an error that names file and offset. It also fails for records that no Kafka up to 4.4 writes.
"""

import re
from pathlib import Path
from typing import NamedTuple

from sluice.errors import SluiceError
from sluice.protocol.errors import ErrorCode
from sluice.protocol.metadata import CONTROL_TYPES
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.records.invalid import InvalidRecords

from .batches import Batch, UnreadableRecordError, batches_in, messages_in
from .image import METADATA_VERSION, InconsistentRecordError, MetadataImage
from .record_versions import LATEST_METADATA_VERSION
from .snapshot import SnapshotId, Voters, snapshot_messages, snapshots_in

_SEGMENT = re.compile(r"(\d{20})\.log")
_CONTROL_MESSAGES = tuple(CONTROL_TYPES.values())
_BOOTSTRAP = "bootstrap.checkpoint"
# Remains of files that were being written or deleted.
_LEFTOVERS = ("*.checkpoint.part", "*.checkpoint.tmp", "*.checkpoint.deleted")


class Torn(NamedTuple):
    path: Path
    position: int
    size: int
    reason: str


class Recovered:
    """The recovered image, and the position for appends."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.voters = Voters()
        self.snapshot: SnapshotId | None = None
        self.start_offset = 0
        self.end_offset = 0  # of the image
        self.log_end_offset = 0  # of the segments, which may end before the snapshot, as of a Kafka that lagged
        self.epoch = 0
        self.epochs: list[tuple[int, int]] = []  # epochs in the log with their first offsets
        self.last_append_ms = 0
        self.records_since_snapshot = 0
        self.segment: Path | None = None
        self.segment_bytes = 0
        self.torn: Torn | None = None

    def replay(self, message: MetadataMessage, offset: int) -> None:
        if isinstance(message, _CONTROL_MESSAGES):
            self.voters = self.voters.replay(message)
            return
        try:
            self.image.replay(message)
        except InconsistentRecordError as error:
            raise UnreadableRecordError(offset, str(error)) from None
        level = self.image.features.get(METADATA_VERSION, 0)
        if level > LATEST_METADATA_VERSION:
            problem = f"{METADATA_VERSION} {level}; expected at most {LATEST_METADATA_VERSION}"
            raise UnreadableRecordError(offset, problem)


def segment_name(base_offset: int) -> str:
    return f"{base_offset:020}.log"


def recover(directory: Path) -> Recovered:
    """Read the log; raise SluiceError if it is not intact."""
    for pattern in _LEFTOVERS:
        for path in directory.glob(pattern):
            path.unlink()
    segments = sorted(path for path in directory.iterdir() if _SEGMENT.fullmatch(path.name))
    first_offset = int(segments[0].stem) if segments else 0
    recovered = _read_snapshot(directory, first_offset)
    recovered.start_offset = recovered.end_offset if not segments else first_offset
    for path in segments:
        _read_segment(recovered, path, is_last=path is segments[-1])
    return recovered


def _read_snapshot(directory: Path, log_start_offset: int) -> Recovered:
    """Return the state of the newest complete snapshot; an older one suffices if the log continues from it.

    A directory that was formatted but never started has only a bootstrap snapshot, which ends at offset 0; older
    releases write it beside the log's directory.
    """
    problem = None
    snapshots = [(snapshot, directory / snapshot.file_name) for snapshot in snapshots_in(directory)]
    bootstrap = directory.parent / _BOOTSTRAP
    if not snapshots and log_start_offset == 0 and bootstrap.exists():
        snapshots = [(SnapshotId(0, 0), bootstrap)]
    for snapshot, path in snapshots:
        recovered = Recovered()
        try:
            for offset, message in snapshot_messages(path.read_bytes()):
                recovered.replay(message, offset)
        except InvalidRecords as error:
            problem = problem or f"{path}: {error.message}"
            continue
        except UnreadableRecordError as error:
            raise SluiceError(f"{path}: {error}") from None
        if snapshot.end_offset < log_start_offset:
            break
        recovered.snapshot = snapshot
        recovered.end_offset, recovered.epoch = snapshot
        return recovered
    if log_start_offset > 0 or (problem is not None and not (directory / segment_name(0)).exists()):
        problem = problem or f"{directory}: no snapshot of the records before offset {log_start_offset}"
        raise SluiceError(f"{problem}; restore the directory from a copy")
    return Recovered()


def _read_segment(recovered: Recovered, path: Path, *, is_last: bool) -> None:
    data = path.read_bytes()
    position = 0
    reason = "incomplete batch"
    base_offset = int(path.stem)
    if base_offset > recovered.end_offset:
        raise SluiceError(f"{path}: the records from offset {recovered.end_offset} to {base_offset} are missing")
    try:
        for batch in batches_in(data):
            _read_batch(recovered, batch)
            position = batch.position + len(batch.data)
    except InvalidRecords as error:
        reason = error.message
    except UnreadableRecordError as error:
        raise SluiceError(f"{path}: {error}") from None
    if position < len(data):
        if not is_last:
            raise SluiceError(f"{path}: no batch at position {position}, after offset {recovered.end_offset}: {reason}")
        recovered.torn = Torn(path, position, len(data), reason)
    recovered.segment, recovered.segment_bytes = path, position


def _read_batch(recovered: Recovered, batch: Batch) -> None:
    header = batch.header
    known_to = recovered.end_offset
    if header.base_offset > known_to:
        gap = f"expected offset {known_to}, got {header.base_offset}"
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, gap)
    if not recovered.epochs or header.partition_leader_epoch != recovered.epochs[-1][0]:
        recovered.epochs.append((header.partition_leader_epoch, header.base_offset))
    recovered.log_end_offset = header.last_offset + 1
    if header.last_offset < known_to:
        return
    for offset, message in messages_in(batch):
        if offset >= known_to:
            recovered.replay(message, offset)
            recovered.records_since_snapshot += 1
    recovered.end_offset = header.last_offset + 1
    recovered.epoch = header.partition_leader_epoch
    recovered.last_append_ms = header.max_timestamp
