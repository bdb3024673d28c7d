"""Recovery of a metadata log: the newest snapshot, then the records appended since.

Follows KafkaRaftLog.createLog and recoverSnapshots, LogLoader, MetadataBatchLoader. A crash leaves at most a part of
one batch, never acknowledged, at the end, which is truncated. Different on purpose: Kafka truncates the log at any
corrupt batch. Here, the start fails with file and position, unless the user accepts the loss.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sluice.errors import SluiceError
from sluice.protocol.errors import ErrorCode
from sluice.protocol.metadata import CONTROL_TYPES
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.records.invalid import InvalidRecords

from .batches import (
    LATEST_METADATA_VERSION,
    Batch,
    UnreadableRecordError,
    batches_in,
    find_batch,
    is_start_of_batch,
    messages_in,
)
from .files import read_leader_epochs
from .image import METADATA_VERSION, InconsistentRecordError, MetadataImage
from .snapshot import SnapshotId, Voters, snapshot_messages, snapshots_in

_SEGMENT = re.compile(r"(\d{20})\.log")
_CONTROL_MESSAGES = tuple(CONTROL_TYPES.values())
_BOOTSTRAP = "bootstrap.checkpoint"
# Remains of files that were being written or deleted.
_LEFTOVERS = ("*.checkpoint.part", "*.checkpoint.tmp", "*.checkpoint.deleted")


TRUNCATE_DAMAGED = "sluice.metadata.truncate.damaged"


class Cut(NamedTuple):
    path: Path
    position: int
    size: int
    reason: str
    later_segments: Sequence[Path] = ()


class Recovered:
    def __init__(self) -> None:
        self.image = MetadataImage()
        self.voters = Voters()
        self.snapshot: SnapshotId | None = None
        self.start_offset = 0
        self.end_offset = 0
        self.log_end_offset = 0  # of the segments, which may end before the snapshot, as of a Kafka that lagged
        self.epoch = 0
        self.epochs: list[tuple[int, int]] = []
        self.last_append_ms = 0
        self.records_since_snapshot = 0
        self.segment: Path | None = None
        self.segment_bytes = 0
        self.cut: Cut | None = None

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


def recover(directory: Path, *, truncate_damaged: bool = False) -> Recovered:
    """Read the log; raise SluiceError if it is damaged, unless `truncate_damaged`."""
    for pattern in _LEFTOVERS:
        for path in directory.glob(pattern):
            path.unlink()
    segments = sorted(path for path in directory.iterdir() if _SEGMENT.fullmatch(path.name))
    first_offset = int(segments[0].stem) if segments else 0
    recovered = _read_snapshot(directory, first_offset)
    recovered.start_offset = recovered.end_offset if not segments else first_offset
    for number, path in enumerate(segments, 1):
        cut = _read_segment(recovered, path)
        if cut is not None:
            recovered.cut = cut = cut._replace(later_segments=segments[number:])
            if not truncate_damaged and not _is_torn(recovered, cut):
                raise SluiceError(_damage(recovered, cut))
            break
    if not truncate_damaged:
        _ensure_complete(recovered, directory)
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


def _read_segment(recovered: Recovered, path: Path) -> Cut | None:
    data = path.read_bytes()
    position = 0
    reason = "incomplete batch"
    base_offset = int(path.stem)
    if base_offset > recovered.end_offset:
        raise SluiceError(f"{path}: the records from offset {recovered.end_offset} to {base_offset} are missing")
    recovered.log_end_offset = max(recovered.log_end_offset, base_offset)  # a snapshot covers the gap
    try:
        for batch in batches_in(data):
            _read_batch(recovered, batch)
            position = batch.position + len(batch.data)
    except InvalidRecords as error:
        reason = error.message
    except UnreadableRecordError as error:
        raise SluiceError(f"{path}: {error}") from None
    recovered.segment, recovered.segment_bytes = path, position
    return Cut(path, position, len(data), reason) if position < len(data) else None


def _is_torn(recovered: Recovered, cut: Cut) -> bool:
    rest = cut.path.read_bytes()[cut.position :]
    is_last = not cut.later_segments
    return is_last and is_start_of_batch(rest, recovered.log_end_offset) and find_batch(rest) is None


def _damage(recovered: Recovered, cut: Cut) -> str:
    lost = cut.size - cut.position + sum(path.stat().st_size for path in cut.later_segments)
    return (
        f"{cut.path}: damaged at byte {cut.position} of {cut.size}, after offset {recovered.log_end_offset - 1}: "
        f"{cut.reason}; restore the file from a copy, or start with --override {TRUNCATE_DAMAGED}=true, which "
        f"removes the last {lost} bytes of the metadata log and so all later changes of topics, configs and ACLs"
    )


def _ensure_complete(recovered: Recovered, directory: Path) -> None:
    epochs = read_leader_epochs(directory)
    if epochs and recovered.end_offset < max(1, epochs[-1][1]):
        epoch, offset = epochs[-1]
        raise SluiceError(
            f"{directory}: the log ends at offset {recovered.end_offset}, but epoch {epoch} begins at {offset}; "
            f"restore the directory from a copy, or start with --override {TRUNCATE_DAMAGED}=true to accept the loss"
        )


def _read_batch(recovered: Recovered, batch: Batch) -> None:
    header = batch.header
    known_to = recovered.end_offset
    # The checksum does not cover these two.
    if header.base_offset != recovered.log_end_offset:
        gap = f"expected offset {recovered.log_end_offset}, got {header.base_offset}"
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, gap)
    epoch = header.partition_leader_epoch
    last_epoch = recovered.epochs[-1][0] if recovered.epochs else -1
    if epoch < last_epoch or (epoch > last_epoch >= 0 and not header.is_control):
        unexpected = f"expected epoch {last_epoch}, got {epoch}"
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, unexpected)
    if epoch != last_epoch:
        recovered.epochs.append((epoch, header.base_offset))
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
