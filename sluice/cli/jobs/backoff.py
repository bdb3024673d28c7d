"""`sluice pipeline backoff`."""

from pathlib import Path

import click

from sluice.cli.commands import Command
from sluice.cli.options import format_option
from sluice.cli.pipeline import spark_options, spark_settings
from sluice.errors import ConfigError, SluiceError
from sluice.spark.backoff.rows import DEFAULTS
from sluice.spark.backoff.spans import Limits
from sluice.spark.session import open_session, open_session_without_kafka
from sluice.text.error_text import expected, one_of

from .interval import interval
from .journal_options import journal_options

_SECONDS = {"milliseconds": 0.001, "seconds": 1.0, "minutes": 60.0, "hours": 3600.0}


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@journal_options
@click.option(
    "--setting", "settings", multiple=True, metavar="NAME=MS",
    help="Client setting, such as retry.backoff.ms=200; repeatable.  "
    "[default: Kafka's defaults]",
)  # fmt: skip
@click.option(
    "--quiet", default="60s", show_default=True, type=interval, help="Time without a failure that ends a span."
)
@click.option("--longest", default="10m", show_default=True, type=interval, help="Maximum length of a span.")
@click.option("--lateness", default="10s", show_default=True, type=interval, help="Maximum lateness of events.")
@click.option("--trigger", default="5s", show_default=True, type=interval, help="Interval between batches.")
@click.option("--once", is_flag=True, help="Process all events so far, then exit.")
@click.option("--output", metavar="DIR", help="Folder for verdicts and quarantine as Parquet, and for checkpoints.")
@click.option("--skip-lost", is_flag=True, help="Continue if unread events were deleted from the topic.")
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
    """Judge how clients back off, from the journal's topic.

    With INPUT, files of `sluice journal export` (NDJSON or Parquet), judges their events and exits. With --format json
    each line is a row.
    """
    wanted = client_settings(settings)
    if inputs:
        _check(inputs, output)

    # Errors are reported here in one line.
    of_spark = {"spark.log.level": "OFF", "spark.sql.shuffle.partitions": "4"} | spark_settings(conf)
    name = "sluice backoff"
    if inputs:
        session = open_session_without_kafka(name, master=master, settings=of_spark)
    else:
        session = open_session(name, master=master, jars=None if jars is None else Path(jars), settings=of_spark)
    from sluice.spark.backoff.job import JobSettings
    from sluice.spark.backoff.run import run
    from sluice.spark.journal_topic import Journal

    run(
        session,
        inputs,
        Journal(bootstrap, topic, starting, skip_lost),
        JobSettings(wanted, Limits(_nanoseconds(quiet), _nanoseconds(longest)), lateness),
        output,
        None if once else trigger,
        click.echo if output_format == "json" else None,
    )


def _check(inputs: tuple[str, ...], output: str | None) -> None:
    if output is None:
        raise ConfigError("INPUT needs --output DIR for the verdicts")
    for path in inputs:
        if "://" not in path and not Path(path).exists():
            raise SluiceError(f"{path}: no such file")
    if (Path(output) / "verdicts").exists():
        raise SluiceError(f"{output}: already has verdicts; choose a new folder")


def client_settings(given: tuple[str, ...]) -> dict[str, float]:
    found = dict(DEFAULTS)
    for item in given:
        name, _, value = item.partition("=")
        if name not in DEFAULTS:
            raise ConfigError(f"--setting: {one_of(DEFAULTS, name)}")
        if not value.isdecimal():
            accepted = f"a whole number of milliseconds, such as {name}=200"
            raise ConfigError(f"--setting {name}: {expected(accepted, value)}")
        found[name] = float(value)
    return found


def _nanoseconds(interval: str) -> int:
    number, unit = interval.split()
    return round(float(number) * _SECONDS[unit] * 1e9)
