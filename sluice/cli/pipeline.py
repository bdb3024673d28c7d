"""`sluice pipeline`: Spark jobs. A job's module is imported when the job is used.

`spark-submit [its options] .../sluice/cli/pipeline.py JOB [options]` also runs them; session, jars and settings are
then those of spark-submit.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

import click

from sluice.cli.commands import Group  # absolute: in spark-submit this file belongs to no package
from sluice.errors import ConfigError
from sluice.text.error_text import expected

_F = TypeVar("_F", bound=Callable[..., object])
JOBS = {
    "backoff": "Judge how clients back off, from the journal.",
    "fleet": "Simulate fleets in a grid of outages and loads.",
    "plan": "Recommend quotas, from the logs of brokers.",
    "throttle": "Show usage and throttling of clients, from the journal.",
}
MASTER = click.option("--master", default="local[*]", show_default=True, help="Spark master.")
CONF = click.option("--conf", multiple=True, metavar="KEY=VALUE", help="Spark property; repeatable.")
_JARS = click.option(
    "--jars", type=click.Path(file_okay=False), help="Folder with the jars of Spark's Kafka connector."
)


def spark_options(command: _F) -> _F:
    return MASTER(_JARS(CONF(command)))


def spark_settings(conf: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for item in conf:
        key, equals, value = item.partition("=")
        if not (key and equals):
            raise ConfigError(f"--conf: {expected('KEY=VALUE, such as spark.driver.memory=2g', item)}")
        settings[key] = value
    return settings


class _Jobs(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(JOBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in JOBS:
            return None
        command = getattr(import_module(f"sluice.cli.jobs.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command), cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Jobs"):
            formatter.write_dl(list(JOBS.items()))


@click.group(cls=_Jobs)
def pipeline() -> None:
    """Run Spark jobs on the journal (requires Java and `pip install 'kafka-sluice[spark]'`; plan runs without both)."""


if __name__ == "__main__":
    from sluice.cli.main import cli

    cli(["pipeline", *sys.argv[1:]], prog_name="sluice")
