"""One run of `sluice pipeline plan`, and its summary. Needs numpy and pyarrow."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import floor
from pathlib import Path

import click

from sluice.cli.progress import progress
from sluice.errors import SluiceError
from sluice.spark.charges.charges import QUARANTINED
from sluice.spark.plan import local_engine, spark_engine
from sluice.spark.plan.analysis import Engine, OnProgress, Settings
from sluice.spark.plan.job import Plan, plan, quarantine_reasons
from sluice.spark.plan.recommendation import Need, Policy, Recommendation
from sluice.spark.session import open_session_without_kafka
from sluice.spark.splits import Split

_REASONS_SHOWN, _BOUNDS_SHOWN = 3, 5


def run(
    inputs: Sequence[str],
    output: str,
    settings: Settings,
    policy: Policy,
    spark: tuple[str, Mapping[str, str]] | None,
    output_format: str,
) -> None:
    """Plan in this process, or on Spark: its master and properties."""
    out = Path(output)
    engine = local_engine.run if spark is None else _on_spark(*spark)
    with progress() as on_progress:
        found = plan(inputs, out, settings, policy, engine, on_progress)
    click.echo(_as_json(output, found) if output_format == "json" else _as_text(output, found))
    if set(+Counter(found.counts)) == {QUARANTINED}:
        for reason in quarantine_reasons(out, _REASONS_SHOWN):
            click.echo(reason, err=True)
        raise SluiceError("no input was understood; expected journal exports or Kafka's request logs")


def _on_spark(master: str, properties: Mapping[str, str]) -> Engine:
    def run_on_spark(
        splits: Sequence[Split], settings: Settings, out: Path, on_progress: OnProgress
    ) -> Mapping[str, int]:
        # Opened late: Spark takes seconds to start, so errors in input and output come first.
        session = open_session_without_kafka(
            "sluice plan", master=master, settings=spark_engine.SETTINGS | dict(properties)
        )
        return spark_engine.engine_on(session)(splits, settings, out, on_progress)

    return run_on_spark


def _as_text(output: str, found: Plan) -> str:
    lines = list(found.warnings)
    lines += [f"{name}: {number:,}" for name, number in sorted(found.counts.items()) if number]
    for each in found.recommendations:
        lines += _recommended(each)
    return "\n".join([*lines, f"{Path(output) / 'report.html'}"])


def _recommended(found: Recommendation) -> list[str]:
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


def _as_json(output: str, found: Plan) -> str:
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


def _need(need: Need, found: Recommendation) -> dict[str, object]:
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


def _name(need: Need) -> str:
    return json.dumps(" ".join(each for each in (need.user, need.client_id) if each))
