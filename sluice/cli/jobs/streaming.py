"""The options that streaming jobs share: their source, the journal's topic, and how they run."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar

import click

from sluice.cli.options import bootstrap_option, duration, format_option, with_all
from sluice.cli.pipeline import spark_options

if TYPE_CHECKING:
    from sluice.spark.streaming import Journal

_F = TypeVar("_F", bound=Callable[..., object])
# Errors are reported in one line.
SPARK_PROPERTIES = {"spark.log.level": "OFF", "spark.sql.shuffle.partitions": "4"}
_OPTIONS = (
    bootstrap_option,
    click.option("--topic", default="__sluice_journal", show_default=True, help="Topic with the events."),
    click.option(
        "--from", "starting", type=click.Choice(["earliest", "latest"]), default="earliest", show_default=True,
        help="Start position of the first run.",
    ),
    click.option("--lateness", default="10s", show_default=True, type=duration(), help="Maximum lateness of events."),
    click.option("--trigger", default="5s", show_default=True, type=duration(), help="Interval between batches."),
    click.option("--once", is_flag=True, help="Process all events so far, then exit."),
    click.option("--skip-lost", is_flag=True, help="Continue if unread events were deleted from the topic."),
    format_option,
    spark_options,
)  # fmt: skip


class StreamingOptions(TypedDict):
    """The arguments of a command with `streaming_options`."""

    bootstrap: str
    topic: str
    starting: str
    lateness: int
    trigger: int
    once: bool
    skip_lost: bool
    output_format: str
    master: str
    jars: Path | None
    conf: dict[str, str]


def streaming_options(command: _F) -> _F:
    return with_all(_OPTIONS, command)


def interval(ms: int) -> str:
    return f"{ms} milliseconds"


def journal(options: StreamingOptions) -> "Journal":
    from sluice.spark.streaming import Journal

    return Journal(options["bootstrap"], options["topic"], options["starting"], options["skip_lost"])


def trigger(options: StreamingOptions) -> str | None:
    return None if options["once"] else interval(options["trigger"])


def echo(options: StreamingOptions) -> Callable[[str], None] | None:
    """Return what prints rows as JSON."""
    return click.echo if options["output_format"] == "json" else None
