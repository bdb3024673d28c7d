"""One run of the `throttle` job: its windows on the screen, as JSON, in files or in a topic."""

from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession
from rich.console import Console

from sluice.spark.failures import spark_errors_in_one_line
from sluice.spark.journal_topic import Journal
from sluice.spark.progress import Tally, run_queries
from sluice.spark.sinks import json_lines

from .byte_quotas import ByteQuotas
from .job import Windows
from .sinks import Sinks, start
from .table import ORDER, show_quarantine, show_windows

__all__ = ["Windows", "run"]


def run(
    session: SparkSession,
    journal: Journal,
    windows: Windows,
    quotas: ByteQuotas,
    output: str | None,
    to_topic: str | None,
    trigger: str | None,
    shows: bool,
    echo: Callable[[str], None] | None,
) -> None:
    """Count the events of the journal's topic; `echo` prints windows as JSON."""
    out, log = Console(), Console(stderr=True)
    show = (lambda rows: show_windows(out, rows)) if echo is None else json_lines(echo, *ORDER)
    sinks = Sinks(
        output,
        to_topic,
        show_windows=show if shows else None,
        show_quarantine=None if output is not None else lambda rows: show_quarantine(log, rows),
    )
    with spark_errors_in_one_line():
        queries = start(session, journal, windows, quotas, sinks, trigger)
        run_queries(queries.all, _summary, out if echo is None else log, log)


def _summary(tallies: Sequence[Tally]) -> str:
    windows, *_, quarantine = (tally.total for tally in tallies)
    parts = [
        f"{windows.of('events'):,} events",
        f"{quarantine.of('quarantined'):,} quarantined",
        f"{windows.late:,} late",
    ]
    parts += [f"{windows.of('lost'):,} lost before they were read"] if windows.of("lost") else []
    parts += [f"final before {windows.watermark}"] if windows.watermark else []
    return ", ".join(parts)
