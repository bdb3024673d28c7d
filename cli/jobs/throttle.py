"""`sluice pipeline throttle`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sluice.cli.commands import Command
from sluice.cli.options import format_option
from sluice.cli.pipeline import spark_options, spark_settings
from sluice.errors import ConfigError

from .interval import Interval
from .journal_options import journal_options

if TYPE_CHECKING:
    from sluice.pipeline.progress import Tally
    from sluice.pipeline.throttle.byte_quotas import ByteQuotas
    from sluice.quotas.entity import Name, QuotaEntity

_QUOTA_KEYS = {"producer_byte_rate": "Produce", "consumer_byte_rate": "Fetch"}


@click.command(cls=Command)
@journal_options
@click.option("--window", default="10s", show_default=True, type=Interval(), help="Length of a window.")
@click.option("--lateness", default="10s", show_default=True, type=Interval(), help="Maximum lateness of events.")
@click.option("--trigger", default="5s", show_default=True, type=Interval(), help="Interval between batches.")
@click.option("--once", is_flag=True, help="Process all events so far, then exit.")
@click.option("--output", metavar="DIR", help="Folder for windows and quarantine as Parquet, and for checkpoints.")
@click.option("--to-topic", metavar="TOPIC", help="Topic for windows as JSON; needs --output.")
@click.option("--table", is_flag=True, help="Show windows; default without --output.")
@click.option("--skip-lost", is_flag=True, help="Continue if unread events were deleted from the topic.")
@format_option
@spark_options
def throttle(
    bootstrap: str,
    topic: str,
    starting: str,
    window: str,
    lateness: str,
    trigger: str,
    once: bool,
    output: str | None,
    to_topic: str | None,
    table: bool,
    skip_lost: bool,
    master: str,
    jars: str | None,
    conf: tuple[str, ...],
    output_format: str,
) -> None:
    """Show usage and throttling of clients in time windows, from the journal's topic.

    With --format json each line is a window, as in --to-topic; a changed window is printed again.
    """
    from sluice.pipeline.session import open_session

    if to_topic is not None and output is None:
        raise ConfigError("--to-topic needs --output DIR, which keeps the position of the writes")
    # Errors are reported here in one line.
    settings = {"spark.log.level": "OFF", "spark.sql.shuffle.partitions": "4"} | spark_settings(conf)
    quotas = byte_quotas(bootstrap)
    session = open_session(
        "sluice throttle", master=master, jars=None if jars is None else Path(jars), settings=settings
    )
    from rich.console import Console

    from sluice.pipeline.failures import spark_errors_in_one_line
    from sluice.pipeline.journal_topic import Journal
    from sluice.pipeline.json_lines import json_lines
    from sluice.pipeline.progress import run_queries
    from sluice.pipeline.throttle.job import Windows
    from sluice.pipeline.throttle.sinks import Sinks, start
    from sluice.pipeline.throttle.table import ORDER, show_quarantine, show_windows

    out, log = Console(), Console(stderr=True)
    is_json = output_format == "json"
    shows = table or is_json or output is None
    show = json_lines(click.echo, *ORDER) if is_json else lambda rows: show_windows(out, rows)
    sinks = Sinks(
        output,
        to_topic,
        show_windows=show if shows else None,
        show_quarantine=None if output is not None else lambda rows: show_quarantine(log, rows),
    )
    journal = Journal(bootstrap, topic, starting, skip_lost)
    with spark_errors_in_one_line():
        queries = start(session, journal, Windows(window, lateness), quotas, sinks, None if once else trigger)
        run_queries(queries.all, _summary, log if is_json else out, log)


def byte_quotas(bootstrap: str) -> "ByteQuotas":
    from sluice.cli.quota.calls import describe_quotas

    found: dict[str, dict[QuotaEntity, float]] = {api: {} for api in _QUOTA_KEYS.values()}
    for parts, quotas in describe_quotas(bootstrap):
        for key in quotas.keys() & _QUOTA_KEYS.keys():
            found[_QUOTA_KEYS[key]][_entity(parts)] = quotas[key]
    return found


def _entity(parts: dict[str, str | None]) -> "QuotaEntity":
    from sluice.quotas.entity import DEFAULT, QuotaEntity

    def name(type_: str) -> "Name":
        return (parts[type_] if parts[type_] is not None else DEFAULT) if type_ in parts else None

    return QuotaEntity(name("user"), name("client-id"))


def _summary(tallies: "list[Tally]") -> str:
    windows, *_, quarantine = (tally.total for tally in tallies)
    parts = [
        f"{windows.of('events'):,} events",
        f"{quarantine.of('quarantined'):,} quarantined",
        f"{windows.late:,} late",
    ]
    parts += [f"{windows.of('lost'):,} lost before they were read"] if windows.of("lost") else []
    parts += [f"final before {windows.watermark}"] if windows.watermark else []
    return ", ".join(parts)
