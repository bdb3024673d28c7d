"""The `plan` job: the effect of quotas on recorded traffic, and a recommendation.

The input is exports of sluice's journal, or Apache Kafka's request log. Each client's requests on each broker are
charged again under each candidate quota (replay.py), on Spark or in this process, with the same result.
"""

from collections.abc import Mapping, Sequence
from heapq import nsmallest
from pathlib import Path
from typing import NamedTuple

from sluice.errors import ConfigError, SluiceError
from sluice.spark.splits import splits_of

from . import tables
from .analysis import Engine, OnProgress, Settings
from .coverage import Coverage, coverage_of, is_partial, warnings_of
from .demand import least_ms, state
from .kafka_configs_script import SCRIPT, script
from .recommendation import Policy, Recommendation, recommend
from .report import Report, effects_of, write_report


class Plan(NamedTuple):
    counts: Mapping[str, int]
    recommendations: list[Recommendation]
    coverage: Coverage
    warnings: list[str]


def plan(
    inputs: Sequence[str], out: Path, settings: Settings, policy: Policy, engine: Engine, on_progress: OnProgress
) -> Plan:
    """Analyse the input, and write all results to a new or empty folder. Raises ConfigError or SluiceError."""
    _prepare(out)
    counts = engine(splits_of(inputs), settings, out, on_progress)
    on_progress("writing the report", 0, 1)
    demands = list(map(tables.demand_of, tables.read_table(out, tables.DEMAND, tables.DEMANDED)))
    least = least_ms(settings.windows)
    stated = state(demands, least, is_partial=is_partial(counts))
    coverage = coverage_of(demands, stated, counts, least)
    warnings = warnings_of(coverage)
    recommendations = []
    if settings.limits:
        needs = map(tables.finding_of, tables.read_table(out, tables.NEEDS, tables.FINDING))
        withheld = "" if coverage.allows_recommendations else "the log does not show the demand"
        recommendations = recommend(needs, stated, settings.by, policy, coverage.advice, withheld)
    effects = effects_of(
        map(tables.finding_of, tables.read_table(out, tables.REPLAYS, tables.FINDING)), settings.limits
    )
    write_report(out, Report(inputs, settings, counts, effects, recommendations, coverage, warnings))
    to_set = [each for each in recommendations if not each.is_empty]
    if to_set:
        _write_recommendation(out, to_set)
        (out / SCRIPT).write_text(script(to_set, settings.by, SCRIPT), encoding="utf-8")
    return Plan(counts, recommendations, coverage, warnings)


def quarantine_reasons(out: Path, most: int) -> list[str]:
    """Return the first quarantined input, with its place and the reason."""
    rows = tables.read_table(out, tables.QUARANTINE, tables.QUARANTINED)
    first = nsmallest(most, ((str(source), int(str(position)), str(reason)) for source, position, reason, _ in rows))
    return [f"{source}:{position}: {reason}" for source, position, reason in first]


def _write_recommendation(out: Path, recommendations: Sequence[Recommendation]) -> None:
    table = tables.Writer(out, tables.RECOMMENDATION, tables.RECOMMENDED)
    for found in recommendations:
        if found.default is not None:
            table.add((found.kind, "default", "", "", found.default, found.default_headroom))
        for need in found.overrides:
            quota = need.recommended(found.headroom)
            table.add((found.kind, "override", need.user, need.client_id, quota, quota / need.quota - 1))
    table.close()


def _prepare(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise ConfigError(f"{out}: not empty; expected a new or empty folder")
    except FileExistsError:
        raise ConfigError(f"{out}: not a folder") from None
    except OSError as error:
        raise SluiceError(f"{out}: {error.strerror or error}") from None
