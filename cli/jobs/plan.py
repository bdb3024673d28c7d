"""`sluice pipeline plan`."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from sluice.broker.throttling.profile import PROFILES
from sluice.cli.commands import Command, Integer
from sluice.cli.completion_values import profiles
from sluice.cli.options import format_option
from sluice.cli.pipeline import CONF, MASTER, spark_settings
from sluice.cli.progress import progress
from sluice.config.value_types import parse_rate
from sluice.errors import ConfigError, SluiceError
from sluice.pipeline.session import SUBMITTED, open_session_without_kafka
from sluice.text.error_text import expected, one_of

if TYPE_CHECKING:
    from sluice.pipeline.charges.sources import Split
    from sluice.pipeline.plan.analysis import Settings
    from sluice.pipeline.plan.engine import Engine, OnProgress
    from sluice.pipeline.plan.job import Plan
    from sluice.pipeline.plan.recommendation import Need, Recommendation

_NEEDED = ("jinja2", "matplotlib", "numpy", "pyarrow")
_REASONS_SHOWN, _BOUNDS_SHOWN = 3, 5
_QUOTAS = ("100k", "200k", "500k", "1M", "2M", "5M", "10M", "20M", "50M")


class _Rate(click.ParamType[float, str]):
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
    conf: tuple[str, ...],
) -> None:
    """Show the effect of quotas on clients, from the logs of brokers, and recommend quotas.

    INPUT is a file or a folder: `sluice journal export` (NDJSON or Parquet) or request logs of Apache Kafka.
    """
    _check_profiles(profile)
    for module in _NEEDED:
        if find_spec(module) is None:
            raise SluiceError(f"{module} is not installed; run pip install 'kafka-sluice[plan]'")
    from sluice.pipeline.charges.charges import QUARANTINED
    from sluice.pipeline.plan.analysis import Limits, Settings
    from sluice.pipeline.plan.job import plan as run
    from sluice.pipeline.plan.job import quarantine_reasons
    from sluice.pipeline.plan.recommendation import Policy

    limits = None if no_recommendation else Limits(max_delay_p99, max_throttled)
    settings = Settings(tuple(sorted(set(quota))), profile, loop, by, limits)  # type: ignore[arg-type]  # click's choice
    policy, out = Policy(overrides, headroom, always_default), Path(output)
    with progress() as on_progress:
        found = run(inputs, out, settings, policy, _engine(engine, master, conf), on_progress)
    click.echo(_as_json(output, found) if output_format == "json" else _as_text(output, found))
    if set(+Counter(found.counts)) == {QUARANTINED}:
        for reason in quarantine_reasons(out, _REASONS_SHOWN):
            click.echo(reason, err=True)
        raise SluiceError("no input was understood; expected journal exports or Kafka's request logs")


def _engine(engine: str | None, master: str, conf: tuple[str, ...]) -> "Engine":
    if engine is None:
        given = click.get_current_context().get_parameter_source("master")
        chosen = given is not ParameterSource.DEFAULT or bool(conf) or SUBMITTED in os.environ
        engine = "spark" if chosen else "local"
    if engine == "local":
        from sluice.pipeline.plan.local_engine import run

        return run
    of_spark = spark_settings(conf)

    def run_on_spark(
        splits: Sequence["Split"], settings: "Settings", out: Path, on_progress: "OnProgress"
    ) -> Mapping[str, int]:
        # Imported late: Spark takes seconds to start, so errors in input and output come first.
        from sluice.pipeline.plan.spark_engine import SETTINGS, engine_on

        session = open_session_without_kafka("sluice plan", master=master, settings=SETTINGS | of_spark)
        return engine_on(session)(splits, settings, out, on_progress)

    return run_on_spark


def _check_profiles(names: tuple[str, ...]) -> None:
    for name in names:
        if name not in PROFILES:
            raise ConfigError(f"--profile: {one_of(PROFILES, name)}")


def _as_text(output: str, found: "Plan") -> str:
    lines = list(found.warnings)
    lines += [f"{name}: {number:,}" for name, number in sorted(found.counts.items()) if number]
    for each in found.recommendations:
        lines += _recommended(each)
    return "\n".join([*lines, f"{Path(output) / 'report.html'}"])


def _recommended(found: "Recommendation") -> list[str]:
    total = len(found.others) + len(found.overrides)
    if found.default is None:
        lines = [f"{found.kind}: no default: {found.why_no_default}"]
    else:
        lines = [
            f"{found.kind}: {found.default:,} bytes/s for all clients, sufficient for {found.basis:,} of {total:,} "
            f"with {found.default_headroom:.0%} headroom; based on {found.basis:,} clients"
        ]
    for need in found.overrides:
        quota, uncertain = need.recommended(found.headroom), ""
        if need.headroom(found.headroom) > found.headroom:
            uncertain = f"; demand uncertain by {need.demand.uncertainty:.0%}"
        lines.append(f"  {_name(need)}: {quota:,}, {quota / need.quota - 1:.0%} headroom{uncertain}")
    bounds = [need for need in found.others if not need.demand.is_known]
    for need in bounds[:_BOUNDS_SHOWN]:
        rate = floor(need.demand.rate)
        demand = f"demand at least {rate:,} bytes/s" if rate else "demand not known"
        lines.append(f"  {_name(need)}: {demand} ({need.demand.confidence})")
    if len(bounds) > _BOUNDS_SHOWN:
        lines.append(f"  and {len(bounds) - _BOUNDS_SHOWN:,} more whose demand is a lower bound")
    return lines


def _as_json(output: str, found: "Plan") -> str:
    recommendations = [
        {
            "kind": each.kind,
            "default": each.default,
            "default_stands_on": each.basis,
            "why_no_default": each.why_no_default,
            "clients": len(each.others) + len(each.overrides),
            "overrides": [_need(need, each) for need in each.overrides],
            "others": [_need(need, each) for need in each.others],
        }
        for each in found.recommendations
    ]
    report = {
        "output": output,
        "warnings": found.warnings,
        "read": dict(found.counts),
        "seconds": found.coverage.seconds,
        "demand": dict(found.coverage.by_confidence),
        "recommendations": recommendations,
    }
    return json.dumps(report, indent=2)


def _need(need: "Need", found: "Recommendation") -> dict[str, object]:
    demand, quota = need.demand, need.recommended(found.headroom) if need in found.overrides else found.default
    return {
        "user": need.user,
        "client_id": need.client_id,
        "quota": quota,
        "required": need.quota if demand.is_known else None,
        "headroom": None if quota is None or not demand.is_known else round(quota / need.quota - 1, 3),
        "demand": floor(demand.rate),
        "confidence": demand.confidence,
        "uncertainty": round(demand.uncertainty, 3) if demand.is_known else None,
    }


def _name(need: "Need") -> str:
    return json.dumps(" ".join(each for each in (need.user, need.client_id) if each))
