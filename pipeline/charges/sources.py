"""The input, cut into splits that can be read apart, and the reading of one.

A split is a range of bytes of a text file, or row groups of a Parquet file; a compressed text file is one. Each line of
text is judged by itself: one that begins with `{` is an event of the journal, any other a line of Kafka's request log.
What cannot be read is quarantined, with why; nothing that stands in a file ends the job.

Paths are of the local machine, or have a scheme that pyarrow knows (s3://, gs://, hdfs://): every process that reads
must find them there.
"""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast

import pyarrow as pa
from pyarrow import fs, parquet

from sluice.errors import SluiceError

from . import from_journal, from_request_log
from .charges import MOST_TEXT, By, Client, Gathered, Quarantined

ROWS_AT_ONCE = 500_000  # that a reader holds before it hands them on
_SPLIT_BYTES = 64 << 20
_BLOCK_BYTES = 4 << 20
_LONGEST_LINE = 16 << 20
_SPLIT_ROWS = 1 << 20
_BATCH_ROWS = 1 << 16
_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"


class Split(NamedTuple):
    """A part of a file. Of Parquet, row groups; of text, bytes; `end` of a compressed one is 0: all there is."""

    path: str
    form: str  # "parquet", "text", "gzip" or, of what is neither and could not be opened, the reason
    begin: int
    end: int


class Found(NamedTuple):
    """What was read of a split, or of a part of it."""

    charges: dict[Client, bytes]
    quarantined: list[Quarantined]
    counts: dict[str, int]
    is_last: bool  # of this split; only then there are counts


def splits_of(paths: Sequence[str]) -> list[Split]:
    """All splits of these files; of a folder, those of the files in it, hidden ones left out. Raises SluiceError."""
    splits = [split for path in paths for file in _files(path) for split in _cut(*file)]
    if not splits:
        raise SluiceError(f"{', '.join(paths)}: there is nothing in it")
    return splits


def read(split: Split, by: By) -> Iterator[Found]:
    """What stands in a split, at most about `ROWS_AT_ONCE` rows at once."""
    gathered = Gathered(by, ROWS_AT_ONCE)
    steps = {"parquet": _read_parquet, "text": _read_text, "gzip": _read_text}.get(split.form)
    if steps is None:
        gathered.quarantine(split.path, 0, split.form, "")
    else:
        for _ in steps(split, gathered):
            if gathered.is_full:
                yield Found(*gathered.take(), {}, is_last=False)
    yield Found(*gathered.take(), dict(gathered.counts), is_last=True)


# -- which files, which splits -----------------------------------------------------------------------------------------


def _files(path: str) -> list[tuple[str, int]]:
    """Each file and its size, in the order of names."""
    try:
        if "://" in path:
            filesystem, inner = fs.FileSystem.from_uri(path)
            scheme = path[: len(path) - len(inner)] if path.endswith(inner) else path.partition("://")[0] + "://"
            info = filesystem.get_file_info(inner)
            if info.type == fs.FileType.Directory:
                found = filesystem.get_file_info(fs.FileSelector(inner))
                return sorted(
                    (scheme + each.path, each.size) for each in found if _counts(each.base_name, each.is_file)
                )
            if info.type == fs.FileType.NotFound:
                raise FileNotFoundError
            return [(path, info.size)]
        local = Path(path)
        if local.is_dir():
            found = [each for each in local.iterdir() if _counts(each.name, each.is_file())]
            return [(str(each), each.stat().st_size) for each in sorted(found)]
        return [(path, local.stat().st_size)]
    except FileNotFoundError:
        raise SluiceError(f"{path}: no such file or folder") from None
    except (OSError, pa.ArrowException) as error:
        raise SluiceError(f"{path}: cannot be read: {error}") from None


def _counts(name: str, is_file: bool) -> bool:
    return is_file and not name.startswith((".", "_"))


def _cut(path: str, size: int) -> Iterator[Split]:
    with _open(path) as file:
        magic = file.read(len(_PARQUET))
        if magic.startswith(_GZIP):
            yield Split(path, "gzip", 0, 0)
        elif magic != _PARQUET:
            yield from (Split(path, "text", at, min(at + _SPLIT_BYTES, size)) for at in range(0, size, _SPLIT_BYTES))
        else:
            yield from _cut_parquet(path, file)


def _cut_parquet(path: str, file: IO[bytes]) -> Iterator[Split]:
    try:
        metadata = parquet.ParquetFile(file).metadata
    except (pa.ArrowException, OSError) as error:
        yield Split(path, f"no Parquet: {error}", 0, 0)
        return
    first = rows = 0
    for number in range(metadata.num_row_groups):
        rows += metadata.row_group(number).num_rows
        if rows >= _SPLIT_ROWS or number + 1 == metadata.num_row_groups:
            yield Split(path, "parquet", first, number + 1)
            first, rows = number + 1, 0


def _open(path: str) -> IO[bytes]:
    if "://" in path:
        filesystem, inner = fs.FileSystem.from_uri(path)
        file: IO[bytes] = filesystem.open_input_file(inner)
        return file
    return Path(path).open("rb")


# -- reading -----------------------------------------------------------------------------------------------------------


def _read_parquet(split: Split, gathered: Gathered) -> Iterator[None]:
    """A step for each batch."""
    with _open(split.path) as opened:
        try:
            file = parquet.ParquetFile(opened)
            row = sum(file.metadata.row_group(number).num_rows for number in range(split.begin))
            missing = [name for name in from_journal.COLUMNS if name not in file.schema_arrow.names]
            if missing:
                reason = f"no export of a journal: there is no column {', no column '.join(missing)}"
                gathered.quarantine(split.path, row, reason, str(file.schema_arrow))
                return
            groups, columns = range(split.begin, split.end), from_journal.COLUMNS
            for batch in file.iter_batches(_BATCH_ROWS, groups, columns):
                from_journal.take_batch(batch.select(columns), split.path, row, gathered)
                row += len(batch)
                yield
        except (pa.ArrowException, OSError) as error:
            gathered.quarantine(split.path, 0, f"cannot be read on: {error}", "")


def _read_text(split: Split, gathered: Gathered) -> Iterator[None]:
    """A step for each block of whole lines."""
    with _open(split.path) as opened:
        file = cast("IO[bytes]", gzip.GzipFile(fileobj=opened)) if split.form == "gzip" else opened  # it reads as one
        position = split.begin
        if position:  # the line that begins before is the split's before this one
            file.seek(position - 1)
            position += len(file.readline()) - 1
        try:
            while split.form == "gzip" or position < split.end:
                # The last line is whole, though it ends behind the split's end, and no line more than that one.
                least = _BLOCK_BYTES if split.form == "gzip" else min(_BLOCK_BYTES, split.end - position)
                block = file.read(least)
                if block and not block.endswith(b"\n"):
                    block += file.readline(_LONGEST_LINE)
                if not block:
                    return
                yield from _take_block(block, split.path, position, gathered)
                position += len(block)
                yield
        except (OSError, EOFError, zlib.error) as error:
            gathered.quarantine(split.path, position, f"cannot be read on: {error}", "")


def _take_block(block: bytes, path: str, position: int, gathered: Gathered) -> Iterator[None]:
    """A step where many lines could not be read."""
    if from_journal.take_lines(block, gathered):
        return
    for line in block.split(b"\n"):
        if line.strip():
            if line.startswith(b"{"):
                reason = from_journal.take_line(line, gathered)
            else:
                reason = from_request_log.take_line(line.decode(errors="replace"), gathered)
            if reason is not None:
                gathered.quarantine(path, position, reason, line[: 4 * MOST_TEXT].decode(errors="backslashreplace"))
                if gathered.has_many_quarantined:
                    yield
        position += len(line) + 1
