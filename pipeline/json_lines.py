"""The rows of a job for programs: an object a line, with the names of the columns; what is null is left out."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from .sinks import Show


def json_lines(echo: Callable[[str], None], *order: str) -> Show:
    """Prints all rows, in the order of these columns."""

    def show(rows: DataFrame) -> None:
        for row in rows.orderBy(*order).select(f.to_json(f.struct("*")).alias("line")).toLocalIterator():
            echo(row["line"])

    return show
