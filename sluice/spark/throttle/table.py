"""The windows of the `throttle` job on the screen."""

from pyspark.sql import DataFrame, Row
from rich.console import Console
from rich.table import Table

ORDER = ("start", "broker", "client_id", "api")
_MOST_ROWS = 30


def show_windows(out: Console, rows: DataFrame) -> None:
    newest = rows.orderBy(*ORDER).tail(_MOST_ROWS)
    if not newest:
        return
    shown = Table("from", "broker", "client id", "API", box=None)
    for heading in ("requests", "errors", "bytes/s", "quota", "throttle ms", "p99 ms"):
        shown.add_column(heading, justify="right")
    for row in newest:
        shown.add_row(*_cells(row))
    out.print(shown)


def show_quarantine(log: Console, rows: DataFrame) -> None:
    for row in rows.toLocalIterator():
        place = f"{row['topic']}-{row['partition']}@{row['offset']}"
        log.print(f"{place}: {row['reason']}", markup=False, highlight=False)


def _cells(row: Row) -> list[str]:
    quota = "" if row["quota"] is None else f"{row['quota']:,.0f}"
    latency = "" if row["latency_ms_p99"] is None else f"{row['latency_ms_p99']:,.1f}"
    counts = [f"{row[name]:,}" for name in ("requests", "errors")]
    whose = [f"{row['start']:%H:%M:%S}", str(row["broker"]), row["client_id"], row["api"]]
    return [*whose, *counts, f"{row['rate']:,.0f}", quota, f"{row['throttle_ms_sum']:,}", latency]
