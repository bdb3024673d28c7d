"""Input files as splits, which are read independently: NDJSON, also in gzip, Parquet, and other lines of text.

Paths are local, or of a scheme of pyarrow (s3://, gs://, hdfs://) that every reading process can access.
"""

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast

import pyarrow as pa
from pyarrow import fs, parquet

from sluice.errors import SluiceError
from sluice.journal_events import BLOCK_BYTES

_SPLIT_BYTES = 64 << 20
_LONGEST_LINE = 16 << 20
_SPLIT_ROWS = 1 << 20
_BATCH_ROWS = 1 << 16
_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"


class Split(NamedTuple):
    """A part of a file: a range of row groups (Parquet) or bytes (text); 0 to 0 for a whole gzip file."""

    path: str
    form: str  # "parquet", "text", "gzip"; or the reason why the file cannot be read
    begin: int
    end: int


def splits_of(paths: Sequence[str]) -> list[Split]:
    """Return the splits of files, and of visible files in folders; raise SluiceError without any input."""
    splits = [split for path in paths for file in _files(path) for split in _cut(*file)]
    if not splits:
        raise SluiceError(f"{', '.join(paths)}: no input; expected files that are not empty")
    return splits


def blocks(split: Split) -> Iterator[tuple[int, bytes]]:
    """Yield complete lines of a text split, with their position in the (uncompressed) file. Raises OSError."""
    with open_file(split.path) as opened:
        file = (
            cast("IO[bytes]", gzip.GzipFile(fileobj=opened)) if split.form == "gzip" else opened
        )  # GzipFile has IO's reading methods
        position = split.begin
        if position:  # a line that begins before this split belongs to the previous one
            file.seek(position - 1)
            position += len(file.readline()) - 1
        while split.form == "gzip" or position < split.end:
            # The last line is read completely, even past the split's end, but no further line.
            least = BLOCK_BYTES if split.form == "gzip" else min(BLOCK_BYTES, split.end - position)
            block = file.read(least)
            if block and not block.endswith(b"\n"):
                block += file.readline(_LONGEST_LINE)
            if not block:
                return
            yield position, block
            position += len(block)


def first_row(file: parquet.ParquetFile, split: Split) -> int:
    """Return the number of the split's first row in the file."""
    return sum(file.metadata.row_group(number).num_rows for number in range(split.begin))


def batches(file: parquet.ParquetFile, split: Split, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    yield from file.iter_batches(_BATCH_ROWS, range(split.begin, split.end), columns)


def _files(path: str) -> list[tuple[str, int]]:
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
        raise SluiceError(f"{path}: cannot read: {error}") from None


def _counts(name: str, is_file: bool) -> bool:
    return is_file and not name.startswith((".", "_"))


def _cut(path: str, size: int) -> Iterator[Split]:
    with open_file(path) as file:
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
        yield Split(path, f"invalid Parquet file: {error}", 0, 0)
        return
    first = rows = 0
    for number in range(metadata.num_row_groups):
        rows += metadata.row_group(number).num_rows
        if rows >= _SPLIT_ROWS or number + 1 == metadata.num_row_groups:
            yield Split(path, "parquet", first, number + 1)
            first, rows = number + 1, 0


def open_file(path: str) -> IO[bytes]:
    if "://" in path:
        filesystem, inner = fs.FileSystem.from_uri(path)
        file: IO[bytes] = filesystem.open_input_file(inner)
        return file
    return Path(path).open("rb")
