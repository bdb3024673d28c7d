"""`sluice fleet sweep`, and the parts that it shares with `sluice pipeline fleet`."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from sluice.cli.commands import Command, Integer
from sluice.cli.progress import progress
from sluice.cli.text_table import table
from sluice.text.json_text import json_text

from .options import (
    FLEET,
    ensure_installed,
    exit_if_interrupted,
    folder,
    groups_of,
    numbers,
    print_caveats,
    runs,
    simulation_options,
)

if TYPE_CHECKING:
    from sluice.fleet.sweep import Cell, Row

    Engine = Callable[[Sequence[Cell]], list[Row]]

_HEADS = ("FLEET", "OUTAGE", "LOAD", "SEED", "PEAK/S", "ATTEMPTS", "DISTURBED", "RECOVERED AFTER")


def sweep_options(command: click.decorators.FC) -> click.decorators.FC:
    fleets = click.option(
        "--fleet", "mixes", required=True, multiple=True, metavar="MODEL:CLIENTS,...", help=f"{FLEET} Repeatable."
    )
    outages = click.option(
        "--outages", default="5,20,60", show_default=True, metavar="S,...", help="Outages of one broker, in s."
    )
    loads = click.option(
        "--loads", default="0.3,0.5,0.65", show_default=True, metavar="SHARE,...",
        help="Shares of the brokers' capacity that the fleet uses before the outage.",
    )  # fmt: skip
    brokers = click.option("--brokers", type=Integer(1, 100), default=3, show_default=True, help="Number of brokers.")
    return fleets(outages(loads(brokers(simulation_options(command)))))


@click.command(cls=Command)
@sweep_options
def sweep(
    mixes: tuple[str, ...],
    outages: str,
    loads: str,
    brokers: int,
    broker: str,
    models: tuple[str, ...],
    settings: tuple[str, ...],
    seeds: int,
    out: str | None,
    output_format: str,
) -> None:
    """Simulate a grid of outages and loads, and show which of them a fleet recovers from."""
    run_sweep(_run_here, mixes, outages, loads, brokers, broker, models, settings, seeds, out, output_format)


def _run_here(cells: "Sequence[Cell]") -> "list[Row]":
    from sluice.fleet.sweep import sweep as run

    with progress() as report:
        return run(cells, runs(report))


def run_sweep(
    engine: "Engine",
    mixes: tuple[str, ...],
    outages: str,
    loads: str,
    brokers: int,
    broker: str,
    models: tuple[str, ...],
    settings: tuple[str, ...],
    seeds: int,
    out: str | None,
    output_format: str,
) -> None:
    ensure_installed()
    from sluice.fleet.report.page import write_sweep_report
    from sluice.fleet.simulation.broker import BROKERS
    from sluice.fleet.sweep import Axes, cells_of, write_rows

    fleets = {mix: groups_of(mix, settings, models) for mix in mixes}
    axes = Axes(fleets, numbers("--outages", outages), numbers("--loads", loads))
    cells = cells_of(axes, BROKERS[broker], brokers=brokers, seeds=range(seeds))
    rows = engine(cells)
    used = [group.name for groups in fleets.values() for group in groups]
    if out is not None:
        write_rows(rows, folder(out))
        write_sweep_report(folder(out) / "sweep.html", rows, used, brokers)
    if output_format == "json":
        click.echo(json_text(rows))
    else:
        click.echo("\n".join(table(_HEADS, [_texts(row) for row in rows])))
        print_caveats(used)
    exit_if_interrupted(len(rows), len(cells), "cells and seeds")


def _texts(row: "Row") -> tuple[str, ...]:
    return (
        row.fleet,
        f"{row.outage_s:g} s",
        f"{row.load:g}",
        str(row.seed),
        f"{row.peak_per_s:,.0f}",
        f"{row.amplification:.2f}x",
        f"{row.disturbed_s} s",
        "never" if row.recovery_s < 0 else f"{row.recovery_s} s",
    )
