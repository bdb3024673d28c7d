"""The `plan` job: the effect of quotas on recorded traffic, and a recommendation.

The input is exports of sluice's journal, or Apache Kafka's request log. Each client's requests on each broker are
charged again under each candidate quota (replay.py), on Spark or in this process, with the same result.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sluice.errors import ConfigError, SluiceError
from sluice.pipeline.charges.sources import splits_of

from .analysis import Settings
from .engine import Engine, OnProgress
from .kafka_configs_script import SCRIPT, script
from .recommendation import Recommendation, recommend
from .report import Report, effects_of, write_report
from .tables import FINDING, NEEDS, RECOMMENDATION, RECOMMENDED, REPLAYS, Writer, finding_of, read_table


class Plan(NamedTuple):
    """The result of a plan, in addition to its files."""

    counts: Mapping[str, int]  # of the input, by kind
    recommendations: list[Recommendation]


def plan(
    inputs: Sequence[str], out: Path, settings: Settings, most_overrides: int, engine: Engine, on_progress: OnProgress
) -> Plan:
    """Analyse the input and write tables, report and script to the folder `out`.

    Raises:
        ConfigError: if `out` is not a new or empty folder
        SluiceError: if no input can be read
    """
    _prepare(out)
    counts = engine(splits_of(inputs), settings, out, on_progress)
    on_progress("writing the report", 0, 1)
    needs = map(finding_of, read_table(out, NEEDS, FINDING))
    recommendations = recommend(needs, settings.by, most_overrides) if settings.limits else []
    effects = effects_of(map(finding_of, read_table(out, REPLAYS, FINDING)), settings.limits)
    write_report(out, Report(inputs, settings, counts, effects, recommendations))
    if recommendations:
        _write_recommendation(out, recommendations)
        (out / SCRIPT).write_text(script(recommendations, settings.by, SCRIPT), encoding="utf-8")
    return Plan(counts, recommendations)


def _write_recommendation(out: Path, recommendations: Sequence[Recommendation]) -> None:
    table = Writer(out, RECOMMENDATION, RECOMMENDED)
    for found in recommendations:
        table.add((found.kind, "default", "", "", found.default))
        for need in found.overrides:
            table.add((found.kind, "override", need.user, need.client_id, need.quota))
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
