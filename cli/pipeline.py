"""`sluice pipeline`: jobs on Spark. A job's module is imported when the job is asked for.

Spark's own command runs the same: `spark-submit [its options] .../sluice/cli/pipeline.py JOB [ours]`; then the session,
its jars and its settings are those of spark-submit.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

import click

from sluice.cli.commands import Group  # by its whole name: to spark-submit this file is in no package
from sluice.errors import ConfigError

_F = TypeVar("_F", bound=Callable[..., object])
JOBS = {
    "backoff": "How the clients of a fleet back off, from the journal.",
    "plan": "What quotas would do, and which ones to set, from what brokers wrote down.",
    "throttle": "What clients used and how long they waited, from the journal.",
}
MASTER = click.option("--master", default="local[*]", show_default=True, help="Where Spark runs.")
CONF = click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A property of Spark; may come several times.")
_JARS = click.option(
    "--jars", type=click.Path(file_okay=False), help="A folder with the jars of Spark's Kafka connector."
)


def spark_options(command: _F) -> _F:
    """`--master`, `--jars` and `--conf`, for a command whose job runs in a session of its own."""
    return MASTER(_JARS(CONF(command)))


def spark_settings(conf: tuple[str, ...]) -> dict[str, str]:
    """What `--conf` says."""
    settings = {}
    for item in conf:
        key, equals, value = item.partition("=")
        if not (key and equals):
            raise ConfigError(f"--conf {item}: must be KEY=VALUE, such as spark.driver.memory=2g")
        settings[key] = value
    return settings


class _Jobs(Group):
    """Knows the jobs by name alone, until one is asked for."""

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
    """Runs jobs on Spark (pip install 'kafka-sluice[spark]', and Java)."""


if __name__ == "__main__":
    from sluice.cli.main import cli

    cli(["pipeline", *sys.argv[1:]], prog_name="sluice")
