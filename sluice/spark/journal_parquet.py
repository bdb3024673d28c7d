"""Journal events as Parquet, with one column per field. Needs pyarrow.

Mappings are JSON in one column: a column has one type, mappings have different fields, and a structure without fields
cannot be written.
"""

from collections.abc import Iterable, Iterator
from typing import IO, get_origin

import msgspec
from pyarrow import ArrowException, RecordBatch, parquet, table

from sluice.errors import SluiceError
from sluice.journal_events import KINDS

_BATCH_ROWS = 1000
AS_JSON = {
    field.name for kind in KINDS.values() for field in msgspec.structs.fields(kind) if get_origin(field.type) is dict
}


def write(file: str, lines: Iterable[str]) -> None:
    rows: list[dict[str, object]] = [msgspec.json.decode(line) for line in lines]
    names = dict.fromkeys(["kind", *(name for kind in KINDS.values() for name in kind.__struct_fields__)])
    parquet.write_table(table({name: [_cell(row.get(name)) for row in rows] for name in names}), file)


def _cell(value: object) -> object:
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else value


def read(path: str, file: IO[bytes]) -> Iterator[bytes]:
    """Yield lines of JSON. Raises SluiceError."""
    try:
        for batch in parquet.ParquetFile(file).iter_batches(_BATCH_ROWS):
            yield lines_of(path, batch)
    except ArrowException as error:
        raise SluiceError(f"{path}: invalid Parquet file: {error}") from None


def lines_of(path: str, batch: RecordBatch) -> bytes:
    """Return rows of a file as lines of JSON. Raises SluiceError."""
    return b"\n".join(_line(path, row) for row in batch.to_pylist())


def _line(path: str, row: dict[str, object]) -> bytes:
    kind = KINDS.get(str(row.get("kind")))
    if kind is None:
        raise SluiceError(f"{path}: not an export of the journal: unknown kind {row.get('kind')}")
    values = {name: row[name] for name in ("kind", *kind.__struct_fields__) if name in row}
    for name in AS_JSON:
        if isinstance(text := values.get(name), str):
            values[name] = msgspec.Raw(text.encode())
    return msgspec.json.encode(values)
