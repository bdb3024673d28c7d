"""Journal events as Parquet, with one column per field. Needs pyarrow.

Mappings are JSON in one column: a column has one type, mappings have different fields, and a structure without fields
cannot be written.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import IO, get_origin

import msgspec
from pyarrow import ArrowException, parquet, table  # type: ignore[import-not-found, import-untyped, unused-ignore]

from sluice.errors import SluiceError
from sluice.journal_events import KINDS, AnyEvent

_AS_JSON = {
    field.name for kind in KINDS.values() for field in msgspec.structs.fields(kind) if get_origin(field.type) is dict
}
_BATCH_ROWS = 1000


def write(file: str, lines: Iterable[str]) -> None:
    rows: list[dict[str, object]] = [msgspec.json.decode(line) for line in lines]
    names = dict.fromkeys(["kind", *(name for kind in KINDS.values() for name in kind.__struct_fields__)])
    parquet.write_table(table({name: [_cell(row.get(name)) for row in rows] for name in names}), file)


def _cell(value: object) -> object:
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else value


def read(path: str, file: IO[bytes]) -> Iterator[Sequence[AnyEvent]]:
    """Yield batches of events. Raises SluiceError."""
    try:
        for batch in parquet.ParquetFile(file).iter_batches(_BATCH_ROWS):
            yield [_event(path, row) for row in batch.to_pylist()]
    except ArrowException as error:
        raise SluiceError(f"{path}: invalid Parquet file: {error}") from None


def _event(path: str, row: dict[str, object]) -> AnyEvent:
    kind = KINDS.get(str(row.get("kind")))
    if kind is None:
        raise SluiceError(f"{path}: not an export of the journal: unknown kind {row.get('kind')}")
    values = {name: row[name] for name in ("kind", *kind.__struct_fields__) if name in row}
    for name in _AS_JSON:
        if isinstance(text := values.get(name), str):
            values[name] = msgspec.json.decode(text)
    try:
        event: AnyEvent = msgspec.convert(values, AnyEvent)
    except msgspec.ValidationError as error:
        raise SluiceError(f"{path}: {row['kind']} event of another journal version: {error}") from None
    return event
