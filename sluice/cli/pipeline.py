"""`sluice pipeline`: Spark jobs. A job's module is imported when the job is used.

`spark-submit [its options] .../sluice/cli/pipeline.py JOB [options]` also runs them; session, jars and settings are
then those of spark-submit.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from sluice.cli.commands import LazyGroup  # absolute: in spark-submit this file belongs to no package
from sluice.errors import ConfigError
from sluice.text.error_text import expected

_F = TypeVar("_F", bound=Callable[..., object])
JOBS = {
    "backoff": "Judge how clients back off, from the journal.",
    "fleet": "Simulate fleets in a grid of outages and loads.",
    "lint": "Judge the clients of a fleet by its journals.",
    "plan": "Recommend quotas, from the logs of brokers.",
    "throttle": "Show usage and throttling of clients, from the journal.",
}


def _properties(ctx: click.Context, param: click.Parameter, conf: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for item in conf:
        key, equals, value = item.partition("=")
        if not (key and equals):
            raise ConfigError(f"--conf: {expected('KEY=VALUE, such as spark.driver.memory=2g', item)}")
        settings[key] = value
    return settings


MASTER = click.option("--master", default="local[*]", show_default=True, help="Spark master.")
CONF = click.option(
    "--conf", multiple=True, metavar="KEY=VALUE", callback=_properties, help="Spark property; repeatable."
)
_JARS = click.option(
    "--jars", type=click.Path(file_okay=False, path_type=Path), help="Folder with the jars of Spark's Kafka connector."
)


def spark_options(command: _F) -> _F:
    return MASTER(_JARS(CONF(command)))


@click.group(cls=LazyGroup, summaries=JOBS, modules={name: f"jobs.{name}" for name in JOBS}, heading="Jobs")
def pipeline() -> None:
    """Run Spark jobs on the journal (requires Java and `pip install 'kafka-sluice[spark]'`; plan runs without both)."""


if __name__ == "__main__":
    from sluice.cli.main import cli

    cli(["pipeline", *sys.argv[1:]], prog_name="sluice")
