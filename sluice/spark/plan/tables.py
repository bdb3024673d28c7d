"""The Parquet tables of a plan: their columns, and how findings are written and read.

- `replays`: a row for each client, broker and candidate
- `needs`: a row for each client and broker, with the smallest sufficient quota
- `demand`: a row for each client and broker, as recorded
- `recommendation`: a row for each quota to set
- `quarantine`: input that could not be read
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyarrow import dataset, parquet

from sluice.spark.charges.charges import Client, Quarantined

from .analysis import Finding
from .demand import Demand
from .replay import Candidate, Outcome

REPLAYS, NEEDS, DEMAND = "replays", "needs", "demand"
QUARANTINE, RECOMMENDATION = "quarantine", "recommendation"

Columns = dict[str, object]  # name -> str, int, float or bool
_ROWS_AT_ONCE = 50_000
_ARROW: dict[object, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def _columns(*rows: type) -> Columns:
    return {name: type_ if type_ in _ARROW else str for row in rows for name, type_ in row.__annotations__.items()}


FINDING = {**_columns(Client, Candidate, Outcome), "throttled_share": float}
DEMANDED = {**_columns(Client), **{name: type_ for name, type_ in _columns(Demand).items() if name != "client"}}
QUARANTINED = _columns(Quarantined)
# `quota_for` is "default" (user and client id are empty) or "override".
RECOMMENDED: Columns = {"kind": str, "quota_for": str, "user": str, "client_id": str, "quota": int, "headroom": float}


def arrow_schema(columns: Columns) -> pa.Schema:
    return pa.schema([(name, _ARROW[type_]) for name, type_ in columns.items()])


def row_of(finding: Finding) -> tuple[object, ...]:
    return (*finding.client, *finding.candidate, *finding.outcome, finding.outcome.throttled_share)


def finding_of(row: Sequence[object]) -> Finding:
    clients, candidates = len(Client._fields), len(Client._fields) + len(Candidate._fields)
    outcome = Outcome._make(row[candidates : candidates + len(Outcome._fields)])
    return Finding(Client._make(row[:clients]), Candidate._make(row[clients:candidates]), outcome)


def row_of_demand(found: Demand) -> tuple[object, ...]:
    client, *numbers = found
    return (*client, *numbers)


def demand_of(row: Sequence[object]) -> Demand:
    clients = len(Client._fields)
    return Demand._make([Client._make(row[:clients]), *row[clients:]])


def table_of(rows: Iterable[Sequence[object]], columns: Columns) -> pa.Table:
    listed = list(rows)
    values = zip(*listed, strict=True) if listed else ((),) * len(columns)
    arrays = [pa.array(column, _ARROW[type_]) for column, type_ in zip(values, columns.values(), strict=True)]
    return pa.table(arrays, schema=arrow_schema(columns))


class Writer:
    """Writes one file of a table, in chunks; without rows only for the first part."""

    def __init__(self, out: Path, table: str, columns: Columns, part: int = 0) -> None:
        self._columns = columns
        self._rows: list[Sequence[object]] = []
        self._path = out / table / f"part-{part}.parquet"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._unfinished = self._path.with_name(f".{uuid4()}")  # Spark may run a task twice
        self._file = None if part else self._open()

    def add(self, row: Sequence[object]) -> None:
        self._rows.append(row)
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._write()

    def close(self) -> None:
        if self._rows:
            self._write()
        if self._file is not None:
            self._file.close()
            self._unfinished.replace(self._path)

    def _open(self) -> parquet.ParquetWriter:
        return parquet.ParquetWriter(self._unfinished, arrow_schema(self._columns))

    def _write(self) -> None:
        self._file = self._file or self._open()
        self._file.write_table(table_of(self._rows, self._columns))
        self._rows = []


def read_table(out: Path, table: str, columns: Columns) -> Iterator[tuple[object, ...]]:
    for batch in dataset.dataset(out / table, arrow_schema(columns), format="parquet").to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
