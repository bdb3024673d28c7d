"""`sluice fleet`."""

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sluice.cli.commands import Command, Group
from sluice.cli.options import format_option
from sluice.cli.progress import progress
from sluice.cli.text_table import table
from sluice.errors import SluiceError
from sluice.text.error_text import expected
from sluice.text.json_text import json_text

from .map import map_command
from .options import (
    SCENARIO,
    SEEDS,
    Fleet,
    ensure_installed,
    exit_if_interrupted,
    fleet_options,
    folder,
    load,
    output_options,
    print_caveats,
    runs,
)
from .sweep import sweep

if TYPE_CHECKING:
    from sluice.fleet.results import Result


@click.group(cls=Group)
def fleet() -> None:
    """Simulate what thousands to millions of clients do when a broker fails."""


@fleet.command(cls=Command)
@SCENARIO
@fleet_options
@click.option("--cold", is_flag=True, help="Start clients without connections.")
@SEEDS
@output_options
def run(scenario: str, fleet: Fleet, cold: bool, seeds: int, out: str | None, output_format: str) -> None:
    """Simulate a fleet in a scenario, from a file or by a name of `sluice scenario list`."""
    from sluice.fleet.results import write
    from sluice.fleet.run import run_fleet

    with progress() as report:
        found = run_fleet(
            load(scenario), fleet.groups, fleet.broker, seeds=range(seeds), cold=cold, progress=runs(report)
        )
    if out is not None:
        write(found, folder(out))
    _show([found], [fleet.mix], out, output_format)
    exit_if_interrupted(len(found.seeds), seeds, "runs")
    if found.fairness and not any(each.throttle_p99_ms for each in found.fairness):
        raise SluiceError(
            f"{scenario}: quota: no client was throttled, because the fleet sends less. Lower the quota, or set"
            " requests.per.s or record.bytes to more"
        )


@fleet.command(cls=Command)
@SCENARIO
@fleet_options
@SEEDS
@output_options
def advise(scenario: str, fleet: Fleet, seeds: int, out: str | None, output_format: str) -> None:
    """Compare backoffs in a scenario, in an open and a closed loop, and recommend one."""
    from sluice.fleet import advice

    with progress() as report:
        found = advice.advise(load(scenario), fleet.groups, fleet.broker, seeds=range(seeds), progress=runs(report))
    if out is not None:
        (folder(out) / "advice.json").write_text(json_text(found), encoding="utf-8")
    if output_format == "json":
        click.echo(json_text(found))
        return
    heads = ("LOOP", "BACKOFF", "PEAK/S", "ATTEMPTS", "RECOVERED AFTER", "FAILED", "ADDED BY 2 S")
    rows = [
        (
            policy.loop,
            policy.settings or "as given",
            f"{policy.peak_per_s:,.0f}",
            f"{policy.amplification:.2f}x",
            "never" if policy.recovery_s is None else f"{policy.recovery_s} s",
            f"{policy.expired:,.0f}",
            f"{policy.added_ms:,.1f} ms",
        )
        for policy in sorted(found, key=lambda policy: policy.loop, reverse=True)
    ]
    click.echo("\n".join(table(heads, rows)))
    for loop in ("open", "closed"):
        best = advice.recommended(found, loop)
        click.echo(f"Recommended for a loop that is {loop}: {best.settings or 'the backoffs as given'}")
    print_caveats(group.name for group in fleet.groups)


@fleet.command(cls=Command)
@click.argument("results", nargs=-1, required=True, metavar="RESULT...")
@click.option("--out", metavar="DIR", help="Folder for the report.")
@format_option
def compare(results: tuple[str, ...], out: str | None, output_format: str) -> None:
    """Compare results of `sluice fleet run --out`. RESULT is a result.json, or its folder."""
    ensure_installed()
    from sluice.fleet.results import read

    if len(results) < 2:
        raise click.UsageError(f"RESULT: {expected('at least two results', len(results))}")
    _show([read(Path(path)) for path in results], [Path(path).name for path in results], out, output_format)


def _show(results: "list[Result]", names: list[str], out: str | None, output_format: str) -> None:
    from sluice.fleet.report.page import describe, write_report
    from sluice.fleet.results import figures_of

    if out is not None:
        write_report(folder(out) / "report.html", results, names)
    figures = [figures_of(result) for result in results]
    if output_format == "json":
        documents = [
            {"name": name, "seeds": [each._asdict() for each in found]}
            for name, found in zip(names, figures, strict=True)
        ]
        click.echo(json_text(documents))
        return
    columns = [dict(describe(found, result.fairness)) for found, result in zip(figures, results, strict=True)]
    rows = [(label, *(column.get(label, "") for column in columns)) for label in dict.fromkeys(chain(*columns))]
    click.echo("\n".join(table(("FIGURE", *names), rows)))
    print_caveats(group.name for result in results for group in result.groups)
    if out is not None:
        click.echo(str(Path(out) / "report.html"))


fleet.add_command(map_command)
fleet.add_command(sweep)
