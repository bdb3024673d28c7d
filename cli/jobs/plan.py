"""`sluice pipeline plan`: run the job, and show its progress and recommendations."""

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sluice.cli.commands import Command, Integer
from sluice.cli.completion_values import profiles
from sluice.cli.options import format_option
from sluice.cli.pipeline import CONF, MASTER, spark_settings
from sluice.cli.progress import progress
from sluice.config.value_types import parse_rate
from sluice.errors import ConfigError, SluiceError
from sluice.text.error_text import expected, one_of

if TYPE_CHECKING:
    from sluice.pipeline.charges.sources import Split
    from sluice.pipeline.plan.analysis import Settings
    from sluice.pipeline.plan.engine import Engine, OnProgress
    from sluice.pipeline.plan.job import Plan
    from sluice.pipeline.plan.recommendation import Need

_NEEDED = ("matplotlib", "numpy", "pyarrow")
_QUOTAS = ("100k", "200k", "500k", "1M", "2M", "5M", "10M", "20M", "50M")


class _Rate(click.ParamType[float, str]):
    """A rate in bytes per second, such as 500k."""

    name = "rate"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return parse_rate(value)
        except ValueError:
            self.fail(expected("bytes per second, such as 500k, 2M or 1048576", value), param, ctx)


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--output", required=True, metavar="DIR", help="New or empty folder for the results.")
@click.option(
    "--quota", multiple=True, type=_Rate(), default=_QUOTAS,
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
@click.option("--overrides", type=Integer(0), default=5, show_default=True, help="Maximum number of overrides.")
@click.option("--no-recommendation", is_flag=True, help="Only evaluate the quotas.")
@click.option(
    "--engine", type=click.Choice(["spark", "here"]), default="spark", show_default=True,
    help="Engine: Spark, or this process without Java.",
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
    overrides: int,
    no_recommendation: bool,
    engine: str,
    output_format: str,
    master: str,
    conf: tuple[str, ...],
) -> None:
    """Show the effect of quotas on clients, from the logs of brokers, and recommend quotas.

    INPUT is a file or a folder: `sluice journal export` (NDJSON or Parquet) or request logs of Apache Kafka.
    """
    _check_profiles(profile)
    for module in _NEEDED:
        if find_spec(module) is None:
            raise SluiceError(f"{module} is not installed; run pip install 'kafka-sluice[spark]'")
    from sluice.pipeline.plan.analysis import Limits, Settings
    from sluice.pipeline.plan.job import plan as run

    limits = None if no_recommendation else Limits(max_delay_p99, max_throttled)
    settings = Settings(tuple(sorted(set(quota))), profile, loop, by, limits)  # type: ignore[arg-type]  # click's choice
    with progress() as on_progress:
        found = run(inputs, Path(output), settings, overrides, _engine(engine, master, conf), on_progress)
    click.echo(_as_json(output, found) if output_format == "json" else _as_text(output, found))


def _engine(engine: str, master: str, conf: tuple[str, ...]) -> "Engine":
    if engine == "here":
        from sluice.pipeline.plan.local_engine import run

        return run
    of_spark = spark_settings(conf)

    def run_on_spark(
        splits: Sequence["Split"], settings: "Settings", out: Path, on_progress: "OnProgress"
    ) -> Mapping[str, int]:
        # Imported late: Spark takes seconds to start, so errors in input and output come first.
        from sluice.pipeline.plan.spark_engine import SETTINGS, engine_on
        from sluice.pipeline.session import open_session_without_kafka

        session = open_session_without_kafka("sluice plan", master=master, settings=SETTINGS | of_spark)
        return engine_on(session)(splits, settings, out, on_progress)

    return run_on_spark


def _check_profiles(names: tuple[str, ...]) -> None:
    from sluice.broker.throttling.profile import PROFILES

    for name in names:
        if name not in PROFILES:
            raise ConfigError(f"--profile: {one_of(PROFILES, name)}")


def _as_text(output: str, found: "Plan") -> str:
    lines = [f"{name}: {number:,}" for name, number in sorted(found.counts.items()) if number]
    for each in found.recommendations:
        total = len(each.others) + len(each.overrides)
        lines.append(
            f"{each.kind}: {each.default:,} bytes/s for all clients, sufficient for {len(each.others):,} of {total:,}"
        )
        lines += [f"  {_name(need)}: {need.quota:,}" for need in each.overrides]
    return "\n".join([*lines, f"{Path(output) / 'report.md'}"])


def _as_json(output: str, found: "Plan") -> str:
    recommendations = [
        {
            "kind": each.kind,
            "default": each.default,
            "clients": len(each.others) + len(each.overrides),
            "overrides": [
                {"user": need.user, "client_id": need.client_id, "quota": need.quota} for need in each.overrides
            ],
        }
        for each in found.recommendations
    ]
    report = {"output": output, "read": dict(found.counts), "recommendations": recommendations}
    return json.dumps(report, indent=2)


def _name(need: "Need") -> str:
    return json.dumps(" ".join(each for each in (need.user, need.client_id) if each))
