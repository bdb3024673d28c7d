"""`sluice pipeline throttle`."""

from pathlib import Path

import click

from sluice.cli.commands import Command
from sluice.cli.options import format_option
from sluice.cli.pipeline import spark_options, spark_settings
from sluice.cli.quota.calls import describe_quotas
from sluice.errors import ConfigError
from sluice.quotas.entity import DEFAULT, Name, QuotaEntity
from sluice.spark.session import open_session

from .interval import interval
from .journal_options import journal_options

_QUOTA_KEYS = {"producer_byte_rate": "Produce", "consumer_byte_rate": "Fetch"}


@click.command(cls=Command)
@journal_options
@click.option("--window", default="10s", show_default=True, type=interval, help="Length of a window.")
@click.option("--lateness", default="10s", show_default=True, type=interval, help="Maximum lateness of events.")
@click.option("--trigger", default="5s", show_default=True, type=interval, help="Interval between batches.")
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
    if to_topic is not None and output is None:
        raise ConfigError("--to-topic needs --output DIR, which keeps the position of the writes")
    # Errors are reported here in one line.
    settings = {"spark.log.level": "OFF", "spark.sql.shuffle.partitions": "4"} | spark_settings(conf)
    quotas = byte_quotas(bootstrap)
    session = open_session(
        "sluice throttle", master=master, jars=None if jars is None else Path(jars), settings=settings
    )

    from sluice.spark.journal_topic import Journal
    from sluice.spark.throttle.job import Windows
    from sluice.spark.throttle.run import run

    run(
        session,
        Journal(bootstrap, topic, starting, skip_lost),
        Windows(window, lateness),
        quotas,
        output,
        to_topic,
        None if once else trigger,
        shows=table or output is None or output_format == "json",
        echo=click.echo if output_format == "json" else None,
    )


def byte_quotas(bootstrap: str) -> dict[str, dict[QuotaEntity, float]]:
    found: dict[str, dict[QuotaEntity, float]] = {api: {} for api in _QUOTA_KEYS.values()}
    for parts, quotas in describe_quotas(bootstrap):
        for key in quotas.keys() & _QUOTA_KEYS.keys():
            found[_QUOTA_KEYS[key]][_entity(parts)] = quotas[key]
    return found


def _entity(parts: dict[str, str | None]) -> QuotaEntity:
    def name(type_: str) -> Name:
        return (parts[type_] if parts[type_] is not None else DEFAULT) if type_ in parts else None

    return QuotaEntity(name("user"), name("client-id"))
