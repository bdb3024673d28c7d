"""The rows of the `backoff` job on the screen: each verdict, or counts of verdicts."""

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sluice.text.printable import printable

ORDER = ("began", "host", "key")
_MOST_ROWS = 30


def show_rows(out: Console, rows: DataFrame) -> None:
    newest = rows.orderBy(*ORDER).tail(_MOST_ROWS)
    if not newest:
        return
    shown = Table("from", "host", "client id", "operation", "statement", "verdict", "reason", box=None)
    for row in newest:
        shown.add_row(*map(Text, _cells(row)))
    out.print(shown)


def counts(rows: DataFrame) -> DataFrame:
    return rows.groupBy("statement", "state").agg(
        f.count_distinct("host", "client_id").alias("clients"), f.count(f.lit(1)).alias("rows")
    )


def show_counts(out: Console, counted: DataFrame) -> None:
    shown = Table("statement", "verdict", box=None)
    for heading in ("clients", "rows"):
        shown.add_column(heading, justify="right")
    for row in counted.orderBy("statement", "state").collect():
        shown.add_row(row["statement"], row["state"], f"{row['clients']:,}", f"{row['rows']:,}")
    out.print(shown)


def _cells(row: Row) -> list[str]:
    operation = f"{row['kind']} {row['key']}"
    named = [printable(row[name]) for name in ("host", "client_id")]
    return [
        f"{row['began']:%H:%M:%S}",
        *named,
        printable(operation),
        row["statement"],
        row["state"],
        printable(row["why"]),
    ]
