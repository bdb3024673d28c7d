"""`sluice pipeline plan`."""

import os
from importlib.util import find_spec

import click
from click.core import ParameterSource

from sluice.broker.throttling.profile import PROFILES
from sluice.cli.commands import Command, Integer
from sluice.cli.completion_values import profiles
from sluice.cli.options import format_option
from sluice.cli.pipeline import CONF, MASTER
from sluice.config.value_types import parse_rate
from sluice.errors import ConfigError, SluiceError
from sluice.spark.session import SUBMITTED
from sluice.text.error_text import expected, one_of

_NEEDED = ("jinja2", "matplotlib", "numpy", "pyarrow")
_QUOTAS = ("100k", "200k", "500k", "1M", "2M", "5M", "10M", "20M", "50M")


def rate(value: str) -> float:
    """Convert bytes per second such as 500k."""
    try:
        return parse_rate(value)
    except ValueError:
        raise click.BadParameter(expected("bytes per second, such as 500k, 2M or 1048576", value)) from None


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--output", required=True, metavar="DIR", help="New or empty folder for the results.")
@click.option(
    "--quota", multiple=True, type=rate, default=_QUOTAS,
    help=f"Quota to try, in bytes/s per broker; repeatable.  [default: {', '.join(_QUOTAS)}]",
)  # fmt: skip
@click.option(
    "--profile", multiple=True, default=("by-version",), metavar="NAME", shell_complete=profiles,
    help="Throttling behaviour (a value of quota.profile); repeatable.  [default: by-version]",
)  # fmt: skip
@click.option(
    "--loop", multiple=True, type=click.Choice(["closed", "open"]), default=("closed",),
    help="Whether a throttled client sends later (closed) or not (open); repeatable.  [default: closed]",
)  # fmt: skip
@click.option(
    "--by", type=click.Choice(["client-id", "user", "user+client-id"]), default="client-id", show_default=True,
    help="Entity whose usage is counted together.",
)  # fmt: skip
@click.option(
    "--max-delay-p99", type=Integer(0), default=100, show_default=True, metavar="MS",
    help="Limit for recommended quotas: 99th percentile of a client's throttle times, in ms.",
)  # fmt: skip
@click.option(
    "--max-throttled", type=click.FloatRange(0, 1), default=0.05, show_default=True, metavar="SHARE",
    help="Limit for recommended quotas: share of a client's responses with a throttle time.",
)  # fmt: skip
@click.option(
    "--headroom", type=click.FloatRange(0), default=0.25, show_default=True, metavar="SHARE",
    help="Least share by which recommended quotas exceed what clients need.",
)  # fmt: skip
@click.option(
    "--overrides", type=Integer(0), default=5, show_default=True, help="Maximum number of overrides beside a default."
)
@click.option(
    "--default", "always_default", is_flag=True,
    help="Recommend a default also from fewer than ten clients, or if clients were throttled.",
)  # fmt: skip
@click.option("--no-recommendation", is_flag=True, help="Only evaluate the quotas.")
@click.option(
    "--engine", type=click.Choice(["local", "spark"]),
    help="Engine: this process, or Spark.  [default: local; spark with --master, --conf or spark-submit]",
)  # fmt: skip
@format_option
@MASTER
@CONF
def plan(
    inputs: tuple[str, ...],
    output: str,
    quota: tuple[float, ...],
    profile: tuple[str, ...],
    loop: tuple[str, ...],
    by: str,
    max_delay_p99: int,
    max_throttled: float,
    headroom: float,
    overrides: int,
    always_default: bool,
    no_recommendation: bool,
    engine: str | None,
    output_format: str,
    master: str,
    conf: dict[str, str],
) -> None:
    """Show the effect of quotas on clients, from the logs of brokers, and recommend quotas.

    INPUT is a file or a folder: `sluice journal export` (NDJSON or Parquet) or request logs of Apache Kafka.
    """
    _check_profiles(profile)
    for module in _NEEDED:
        if find_spec(module) is None:
            raise SluiceError(f"{module} is not installed; run pip install 'kafka-sluice[plan]'")
    chosen = engine or ("spark" if _names_spark(conf) else "local")
    from sluice.spark.plan.analysis import Limits, Settings
    from sluice.spark.plan.recommendation import Policy

    from .plan_run import run

    limits = None if no_recommendation else Limits(max_delay_p99, max_throttled)
    run(
        inputs,
        output,
        Settings(tuple(sorted(set(quota))), profile, loop, by, limits),  # type: ignore[arg-type]  # click's choice
        Policy(overrides, headroom, always_default),
        (master, conf) if chosen == "spark" else None,
        output_format,
    )


def _names_spark(conf: dict[str, str]) -> bool:
    given = click.get_current_context().get_parameter_source("master")
    return given is not ParameterSource.DEFAULT or bool(conf) or SUBMITTED in os.environ


def _check_profiles(names: tuple[str, ...]) -> None:
    for name in names:
        if name not in PROFILES:
            raise ConfigError(f"--profile: {one_of(PROFILES, name)}")
