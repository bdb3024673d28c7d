"""`sluice fleet sweep`, and the parts that it shares with `sluice pipeline fleet`."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

import click

from sluice.cli.commands import Command, Integer
from sluice.cli.options import with_all
from sluice.cli.progress import progress
from sluice.cli.text_table import table
from sluice.text.json_text import json_text

from .options import (
    FLEET,
    SEEDS,
    ensure_installed,
    exit_if_interrupted,
    folder,
    groups_of,
    model_options,
    numbers,
    output_options,
    print_caveats,
    runs,
)

if TYPE_CHECKING:
    from sluice.fleet.sweep import Cell, Row

    Engine = Callable[[Sequence[Cell]], list[Row]]

_F = TypeVar("_F", bound=Callable[..., object])
_HEADS = ("FLEET", "OUTAGE", "LOAD", "SEED", "PEAK/S", "ATTEMPTS", "DISTURBED", "RECOVERED AFTER")

_OPTIONS = (
    click.option(
        "--fleet", "mixes", required=True, multiple=True, metavar="MODEL:CLIENTS,...", help=f"{FLEET} Repeatable."
    ),
    click.option(
        "--outages", default="5,20,60", show_default=True, metavar="S,...", help="Outages of one broker, in s."
    ),
    click.option(
        "--loads", default="0.3,0.5,0.65", show_default=True, metavar="SHARE,...",
        help="Shares of the brokers' capacity that the fleet uses before the outage.",
    ),
    click.option("--brokers", type=Integer(1, 100), default=3, show_default=True, help="Number of brokers."),
    model_options,
    SEEDS,
    output_options,
)  # fmt: skip


class SweepOptions(TypedDict):
    """The arguments of a command with `sweep_options`."""

    mixes: tuple[str, ...]
    outages: str
    loads: str
    brokers: int
    broker: str
    models: tuple[str, ...]
    settings: tuple[str, ...]
    seeds: int
    out: str | None
    output_format: str


def sweep_options(command: _F) -> _F:
    return with_all(_OPTIONS, command)


@click.command(cls=Command)
@sweep_options
def sweep(**options: Unpack[SweepOptions]) -> None:
    """Simulate a grid of outages and loads, and show which of them a fleet recovers from."""
    run_sweep(_run_here, options)


def _run_here(cells: "Sequence[Cell]") -> "list[Row]":
    from sluice.fleet.sweep import sweep as run

    with progress() as report:
        return run(cells, runs(report))


def run_sweep(engine: "Engine", options: SweepOptions) -> None:
    ensure_installed()
    from sluice.fleet.report.page import write_sweep_report
    from sluice.fleet.simulation.broker import BROKERS
    from sluice.fleet.sweep import Axes, cells_of, write_rows

    out, brokers = options["out"], options["brokers"]
    fleets = {mix: groups_of(mix, options["settings"], options["models"]) for mix in options["mixes"]}
    axes = Axes(fleets, numbers("--outages", options["outages"]), numbers("--loads", options["loads"]))
    cells = cells_of(axes, BROKERS[options["broker"]], brokers=brokers, seeds=range(options["seeds"]))
    rows = engine(cells)
    used = [group.name for groups in fleets.values() for group in groups]
    if out is not None:
        write_rows(rows, folder(out))
        write_sweep_report(folder(out) / "sweep.html", rows, used, brokers)
    if options["output_format"] == "json":
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
