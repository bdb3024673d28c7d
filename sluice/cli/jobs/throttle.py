"""`sluice pipeline throttle`."""

from typing import Unpack

import click

from sluice.cli.commands import Command
from sluice.cli.options import duration
from sluice.cli.quota.places import Cluster
from sluice.errors import ConfigError
from sluice.quotas.entity import DEFAULT, Name, QuotaEntity
from sluice.spark.session import open_session

from .streaming import SPARK_PROPERTIES, StreamingOptions, echo, interval, journal, streaming_options, trigger

_QUOTA_KEYS = {"producer_byte_rate": "Produce", "consumer_byte_rate": "Fetch"}


@click.command(cls=Command)
@streaming_options
@click.option("--window", default="10s", show_default=True, type=duration(), help="Length of a window.")
@click.option("--output", metavar="DIR", help="Folder for windows and quarantine as Parquet, and for checkpoints.")
@click.option("--to-topic", metavar="TOPIC", help="Topic for windows as JSON; needs --output.")
@click.option("--table", is_flag=True, help="Show windows; default without --output.")
def throttle(
    window: int, output: str | None, to_topic: str | None, table: bool, **options: Unpack[StreamingOptions]
) -> None:
    """Show usage and throttling of clients in time windows, from the journal's topic.

    With --format json each line is a window, as in --to-topic; a changed window is printed again.
    """
    if to_topic is not None and output is None:
        raise ConfigError("--to-topic needs --output DIR, which keeps the position of the writes")
    quotas = byte_quotas(options["bootstrap"])
    settings = SPARK_PROPERTIES | options["conf"]
    session = open_session("sluice throttle", master=options["master"], jars=options["jars"], settings=settings)

    from sluice.spark.throttle.job import Windows
    from sluice.spark.throttle.run import run

    as_json = echo(options)
    run(
        session,
        journal(options),
        Windows(interval(window), interval(options["lateness"])),
        quotas,
        output,
        to_topic,
        trigger(options),
        shows=table or output is None or as_json is not None,
        echo=as_json,
    )


def byte_quotas(bootstrap: str) -> dict[str, dict[QuotaEntity, float]]:
    found: dict[str, dict[QuotaEntity, float]] = {api: {} for api in _QUOTA_KEYS.values()}
    for parts, quotas in Cluster(bootstrap).describe({}):
        for key in quotas.keys() & _QUOTA_KEYS.keys():
            found[_QUOTA_KEYS[key]][_entity(parts)] = quotas[key]
    return found


def _entity(parts: dict[str, str | None]) -> QuotaEntity:
    def name(type_: str) -> Name:
        return (parts[type_] if parts[type_] is not None else DEFAULT) if type_ in parts else None

    return QuotaEntity(name("user"), name("client-id"))
