"""The charges in input files.

A text line that begins with `{` is a journal event, any other a line of Kafka's request log. Unreadable input is
quarantined with a reason.
"""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
from pyarrow import parquet

from sluice.spark.splits import Split, batches, blocks, first_row, open_file

from . import from_journal, from_request_log
from .charges import MOST_TEXT, By, Client, Gathered, Quarantined

ROWS_AT_ONCE = 500_000  # that a reader buffers


class Found(NamedTuple):
    charges: dict[Client, bytes]
    quarantined: list[Quarantined]
    counts: dict[str, int]  # of the whole split, only in its last part
    is_last: bool


def read(split: Split, by: By) -> Iterator[Found]:
    gathered = Gathered(by, ROWS_AT_ONCE)
    steps = {"parquet": _read_parquet, "text": _read_text, "gzip": _read_text}.get(split.form)
    if steps is None:
        gathered.quarantine(split.path, 0, split.form, "")
    else:
        for _ in steps(split, gathered):
            if gathered.is_full:
                yield Found(*gathered.take(), {}, is_last=False)
    yield Found(*gathered.take(), dict(gathered.counts), is_last=True)


def _read_parquet(split: Split, gathered: Gathered) -> Iterator[None]:
    with open_file(split.path) as opened:
        try:
            file = parquet.ParquetFile(opened)
            row = first_row(file, split)
            missing = [name for name in from_journal.COLUMNS if name not in file.schema_arrow.names]
            if missing:
                reason = f"not a journal export: missing columns {', '.join(missing)}"
                gathered.quarantine(split.path, row, reason, str(file.schema_arrow))
                return
            columns = from_journal.COLUMNS
            for batch in batches(file, split, columns):
                from_journal.take_batch(batch.select(columns), split.path, row, gathered)
                row += len(batch)
                yield
        except (pa.ArrowException, OSError) as error:
            gathered.quarantine(split.path, 0, f"cannot read further: {error}", "")


def _read_text(split: Split, gathered: Gathered) -> Iterator[None]:
    position = split.begin
    try:
        for position, block in blocks(split):
            yield from _take_block(block, split.path, position, gathered)
            yield
    except (OSError, EOFError, zlib.error) as error:
        gathered.quarantine(split.path, position, f"cannot read further: {error}", "")


def _take_block(block: bytes, path: str, position: int, gathered: Gathered) -> Iterator[None]:
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
