"""`sluice pipeline backoff`."""

from pathlib import Path
from typing import Unpack

import click

from sluice.cli.commands import Command
from sluice.cli.options import duration
from sluice.errors import ConfigError, SluiceError
from sluice.spark.backoff.rows import DEFAULTS
from sluice.spark.backoff.spans import Limits
from sluice.spark.session import open_session, open_session_without_kafka
from sluice.text.error_text import expected, one_of

from .streaming import SPARK_PROPERTIES, StreamingOptions, echo, interval, journal, streaming_options, trigger

_NS_PER_MS = 1_000_000


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@streaming_options
@click.option(
    "--setting", "settings", multiple=True, metavar="NAME=MS",
    help="Client setting, such as retry.backoff.ms=200; repeatable.  "
    "[default: Kafka's defaults]",
)  # fmt: skip
@click.option(
    "--quiet", default="60s", show_default=True, type=duration(), help="Time without a failure that ends a span."
)
@click.option("--longest", default="10m", show_default=True, type=duration(), help="Maximum length of a span.")
@click.option("--output", metavar="DIR", help="Folder for verdicts and quarantine as Parquet, and for checkpoints.")
def backoff(
    inputs: tuple[str, ...],
    settings: tuple[str, ...],
    quiet: int,
    longest: int,
    output: str | None,
    **options: Unpack[StreamingOptions],
) -> None:
    """Judge how clients back off, from the journal's topic.

    With INPUT, files of `sluice journal export` (NDJSON or Parquet), judges their events and exits. With --format json
    each line is a row.
    """
    wanted = client_settings(settings)
    if inputs:
        _check(inputs, output)
    name, master, properties = "sluice backoff", options["master"], SPARK_PROPERTIES | options["conf"]
    if inputs:
        session = open_session_without_kafka(name, master=master, settings=properties)
    else:
        session = open_session(name, master=master, jars=options["jars"], settings=properties)

    from sluice.spark.backoff.job import JobSettings
    from sluice.spark.backoff.run import run

    limits = Limits(quiet * _NS_PER_MS, longest * _NS_PER_MS)
    job = JobSettings(wanted, limits, interval(options["lateness"]))
    run(session, inputs, journal(options), job, output, trigger(options), echo(options))


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
