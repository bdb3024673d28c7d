"""`sluice pipeline backoff`: runs the job on the journal's topic or on exports of it, and shows what it found."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sluice.cli.commands import Command
from sluice.cli.options import format_option
from sluice.cli.pipeline import spark_options, spark_settings
from sluice.errors import ConfigError, SluiceError
from sluice.text.did_you_mean import one_of

from .interval import Interval
from .journal_options import journal_options

if TYPE_CHECKING:
    from sluice.pipeline.progress import Tally

_SECONDS = {"milliseconds": 0.001, "seconds": 1.0, "minutes": 60.0, "hours": 3600.0}


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@journal_options
@click.option(
    "--setting", "settings", multiple=True, metavar="NAME=MS",
    help="What the clients are configured to, such as retry.backoff.ms=200; may come several times.  "
    "[default: Kafka's own]",
)  # fmt: skip
@click.option("--quiet", default="60s", show_default=True, type=Interval(), help="So long with no failure ends a span.")
@click.option("--longest", default="10m", show_default=True, type=Interval(), help="The longest that a span may be.")
@click.option("--lateness", default="10s", show_default=True, type=Interval(), help="How late events may come.")
@click.option("--trigger", default="5s", show_default=True, type=Interval(), help="How often to look for events.")
@click.option("--once", is_flag=True, help="End when all events that there are have been read.")
@click.option("--output", metavar="DIR", help="Write verdicts and quarantine there, as Parquet, and go on from there.")
@click.option("--skip-lost", is_flag=True, help="Go on where events are gone from the topic that were not read.")
@format_option
@spark_options
def backoff(
    inputs: tuple[str, ...],
    bootstrap: str,
    topic: str,
    starting: str,
    settings: tuple[str, ...],
    quiet: str,
    longest: str,
    lateness: str,
    trigger: str,
    once: bool,
    output: str | None,
    skip_lost: bool,
    master: str,
    jars: str | None,
    conf: tuple[str, ...],
    output_format: str,
) -> None:
    """Judges how the clients of a fleet back off, from the journal's topic.

    With INPUT, files of `sluice journal export` (NDJSON or Parquet), it judges what is in these, and ends. With
    --format json a row is a line.
    """
    wanted = client_settings(settings)
    if inputs:
        _check(inputs, output)
    from rich.console import Console

    from sluice.pipeline.session import open_session, open_session_without_kafka

    # What goes wrong is told here, in a line.
    of_spark = {"spark.log.level": "OFF", "spark.sql.shuffle.partitions": "4"} | spark_settings(conf)
    name = "sluice backoff"
    if inputs:
        session = open_session_without_kafka(name, master=master, settings=of_spark)
    else:
        session = open_session(name, master=master, jars=None if jars is None else Path(jars), settings=of_spark)
    from sluice.pipeline.backoff.files import Sinks, judge_files, start
    from sluice.pipeline.backoff.job import JobSettings
    from sluice.pipeline.backoff.spans import Limits
    from sluice.pipeline.backoff.table import ORDER, counts, show_counts, show_rows
    from sluice.pipeline.failures import spark_errors_in_one_line
    from sluice.pipeline.journal_topic import Journal
    from sluice.pipeline.json_lines import json_lines
    from sluice.pipeline.progress import run_queries
    from sluice.pipeline.throttle.table import show_quarantine

    job_settings = JobSettings(wanted, Limits(_nanoseconds(quiet), _nanoseconds(longest)), lateness)
    out, log = Console(), Console(stderr=True)
    is_json = output_format == "json"
    show = json_lines(click.echo, *ORDER) if is_json else lambda rows: show_rows(out, rows)
    show_all = json_lines(click.echo, "statement", "state") if is_json else lambda rows: show_counts(out, rows)
    sinks = Sinks(output, show, lambda rows: show_quarantine(log, rows))
    journal = Journal(bootstrap, topic, starting, skip_lost)
    with spark_errors_in_one_line():
        if output is not None and inputs:
            show_all(counts(judge_files(session, inputs, job_settings, output)))
        else:
            queries = start(session, journal, job_settings, sinks, None if once else trigger)
            run_queries(queries, _summary, log if is_json else out, log)


def _check(inputs: tuple[str, ...], output: str | None) -> None:
    """That there is what is to be read, and nothing where it is to be written: before Spark takes its time."""
    if output is None:
        raise ConfigError("INPUT needs --output DIR, where the verdicts are written")
    for path in inputs:
        if "://" not in path and not Path(path).exists():
            raise SluiceError(f"{path}: there is no such file")
    if (Path(output) / "verdicts").exists():
        raise SluiceError(f"{output}: there are verdicts already; --output must be a new folder for INPUT")


def client_settings(given: tuple[str, ...]) -> dict[str, float]:
    """What `--setting` says, on top of what Kafka's clients have by default. Raises ConfigError."""
    from sluice.pipeline.backoff.rows import DEFAULTS

    found = dict(DEFAULTS)
    for item in given:
        name, _, value = item.partition("=")
        if name not in DEFAULTS:
            raise ConfigError(f"--setting {item}: {one_of(name, DEFAULTS)}")
        if not value.isdecimal():
            raise ConfigError(f"--setting {item}: must be a whole number of milliseconds, such as {name}=200")
        found[name] = float(value)
    return found


def _nanoseconds(interval: str) -> int:
    number, unit = interval.split()
    return round(float(number) * _SECONDS[unit] * 1e9)


def _summary(tallies: "list[Tally]") -> str:
    found, quarantine = (tally.total for tally in tallies)
    parts = [
        f"{found.of('events'):,} events",
        f"{found.of('verdicts'):,} verdicts",
        f"{quarantine.of('quarantined'):,} quarantined",
        f"{found.late:,} late",
    ]
    parts += [f"{found.of('lost'):,} lost before they were read"] if found.of("lost") else []
    return ", ".join(parts)
