"""One run of the `backoff` job: its inputs, and its verdicts on the screen, as JSON or in files."""

from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession
from rich.console import Console

from sluice.spark.failures import spark_errors_in_one_line
from sluice.spark.journal_topic import Journal
from sluice.spark.progress import Tally, run_queries
from sluice.spark.sinks import json_lines
from sluice.spark.throttle.table import show_quarantine

from .files import Sinks, judge_files, start
from .job import JobSettings
from .table import ORDER, counts, show_counts, show_rows

__all__ = ["JobSettings", "run"]


def run(
    session: SparkSession,
    inputs: Sequence[str],
    journal: Journal,
    settings: JobSettings,
    output: str | None,
    trigger: str | None,
    echo: Callable[[str], None] | None,
) -> None:
    """Judge the events of files, or of the journal's topic without any; `echo` prints rows as JSON."""
    out, log = Console(), Console(stderr=True)
    with spark_errors_in_one_line():
        if output is not None and inputs:
            found = counts(judge_files(session, inputs, settings, output))
            if echo is None:
                show_counts(out, found)
            else:
                json_lines(echo, "statement", "state")(found)
            return
        show = (lambda rows: show_rows(out, rows)) if echo is None else json_lines(echo, *ORDER)
        sinks = Sinks(output, show, lambda rows: show_quarantine(log, rows))
        queries = start(session, journal, settings, sinks, trigger)
        run_queries(queries, _summary, out if echo is None else log, log)


def _summary(tallies: Sequence[Tally]) -> str:
    found, quarantine = (tally.total for tally in tallies)
    parts = [
        f"{found.of('events'):,} events",
        f"{found.of('verdicts'):,} verdicts",
        f"{quarantine.of('quarantined'):,} quarantined",
        f"{found.late:,} late",
    ]
    parts += [f"{found.of('lost'):,} lost before they were read"] if found.of("lost") else []
    return ", ".join(parts)
