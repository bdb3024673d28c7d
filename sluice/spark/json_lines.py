"""The rows of a job as JSON, one object per line, without nulls."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from .sinks import Show


def json_lines(echo: Callable[[str], None], *order: str) -> Show:
    """Return a function that prints all rows, sorted by these columns."""

    def show(rows: DataFrame) -> None:
        for row in rows.orderBy(*order).select(f.to_json(f.struct("*")).alias("line")).toLocalIterator():
            echo(row["line"])

    return show
