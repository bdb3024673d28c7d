"""Where the rows of a stream go, the same for each job: Parquet files, exactly once, or the screen."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

Show = Callable[[DataFrame], None]


def parquet(writer: DataStreamWriter, output: str, name: str) -> DataStreamWriter:
    """To files in the folder of this name in `output`, which has the checkpoint too."""
    checkpoint = f"{output}/checkpoints/{name}"
    return writer.format("parquet").option("path", f"{output}/{name}").option("checkpointLocation", checkpoint)


def shown(writer: DataStreamWriter, show: Show) -> DataStreamWriter:
    """To a function, after each trigger."""
    return writer.foreachBatch(lambda rows, _: show(rows))


def triggered(writer: DataStreamWriter, trigger: str | None) -> DataStreamWriter:
    """Looks every `trigger` for what is new; None: it ends when all that there is has been read."""
    return writer.trigger(availableNow=True) if trigger is None else writer.trigger(processingTime=trigger)
