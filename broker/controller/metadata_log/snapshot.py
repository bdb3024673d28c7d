"""Snapshots of a metadata log (KIP-630): one file with the state after all records before an offset.

Follows Kafka's Snapshots and RecordsSnapshotWriter: `<end offset>-<epoch>.checkpoint` has a header and a footer as
control records, and the image in between.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from sluice.protocol.errors import ErrorCode
from sluice.protocol.metadata.control import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.records.invalid import InvalidRecords

from .batches import BatchStart, batches_in, control_batch, messages_in, metadata_batch
from .files import sync_directory, write_whole
from .image import METADATA_VERSION, MetadataImage

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
# No batch comes near 8 MiB, the most that Kafka reads at once.
_RECORDS_PER_BATCH = 1_000
_CONTROL_VERSION = 0


class SnapshotId(NamedTuple):
    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020}-{self.epoch:010}.checkpoint"


class Voters(NamedTuple):
    """The quorum's control records in snapshots; only with dynamic voters (KIP-853)."""

    kraft_version: int = 0
    record: VotersRecord | None = None

    def replay(self, message: MetadataMessage) -> "Voters":
        if isinstance(message, KRaftVersionRecord):
            return self._replace(kraft_version=message.kraft_version)
        return self._replace(record=message) if isinstance(message, VotersRecord) else self

    def records(self) -> list[MetadataMessage]:
        if self.record is None:
            return []
        return [KRaftVersionRecord(kraft_version=self.kraft_version), self.record]


def snapshots_in(directory: Path) -> list[SnapshotId]:
    names = (_NAME.fullmatch(path.name) for path in directory.iterdir())
    return sorted((SnapshotId(int(name[1]), int(name[2])) for name in names if name is not None), reverse=True)


def write_snapshot(
    directory: Path, snapshot: SnapshotId, image: MetadataImage, voters: Voters, last_append_ms: int
) -> None:
    batches: list[bytes] = []
    offset = 0

    def add(messages: Sequence[MetadataMessage], *, control: bool) -> None:
        nonlocal offset
        start = BatchStart(offset, snapshot.epoch, last_append_ms)
        if control:
            batches.append(control_batch(messages, _CONTROL_VERSION, start))
        else:
            batches.append(metadata_batch(messages, image.features.get(METADATA_VERSION, 0), start))
        offset += len(messages)

    header = SnapshotHeaderRecord(last_contained_log_timestamp=last_append_ms)
    add([header, *voters.records()], control=True)
    records = image.records()
    while chunk := list(islice(records, _RECORDS_PER_BATCH)):
        add(chunk, control=False)
    add([SnapshotFooterRecord()], control=True)
    write_whole(directory / snapshot.file_name, b"".join(batches))
    sync_directory(directory)


def snapshot_messages(data: bytes) -> Iterator[tuple[int, MetadataMessage]]:
    """Yield each record with its offset in the snapshot.

    Raises:
        InvalidRecords: The snapshot is incomplete or corrupt.
        UnreadableRecordError: A record cannot be interpreted.
    """
    first: MetadataMessage | None = None
    message: MetadataMessage | None = None
    for batch in batches_in(data):
        for offset, message in messages_in(batch):
            first = first or message
            yield offset, message
    if not isinstance(first, SnapshotHeaderRecord) or not isinstance(message, SnapshotFooterRecord):
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, "the snapshot has no header or no footer")
