"""The outputs that all streaming jobs share: Parquet files, written exactly once, or the screen."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.readwriter import DataStreamWriter

Show = Callable[[DataFrame], None]


def parquet(writer: DataStreamWriter, output: str, name: str) -> DataStreamWriter:
    checkpoint = f"{output}/checkpoints/{name}"
    return writer.format("parquet").option("path", f"{output}/{name}").option("checkpointLocation", checkpoint)


def shown(writer: DataStreamWriter, show: Show) -> DataStreamWriter:
    return writer.foreachBatch(lambda rows, _: show(rows))


def triggered(writer: DataStreamWriter, trigger: str | None) -> DataStreamWriter:
    """Set the interval between batches; None stops the query at the current end of its input."""
    return writer.trigger(availableNow=True) if trigger is None else writer.trigger(processingTime=trigger)


def json_lines(echo: Callable[[str], None], *order: str) -> Show:
    """Return a function that prints all rows as JSON without nulls, one object per line, sorted by these columns."""

    def show(rows: DataFrame) -> None:
        for row in rows.orderBy(*order).select(f.to_json(f.struct("*")).alias("line")).toLocalIterator():
            echo(row["line"])

    return show
