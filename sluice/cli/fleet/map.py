"""`sluice fleet map`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sluice.cli.commands import Command, Integer
from sluice.cli.progress import progress
from sluice.text.json_text import json_text

from .options import Fleet, exit_if_interrupted, fleet_options, folder, output_options, print_caveats, runs

if TYPE_CHECKING:
    from sluice.fleet.map.grid import Map

_CHARACTERS = {"recovers": "-", "late": "o", "never": "#"}
_POINT = "X"


@click.command("map", cls=Command)
@fleet_options
@click.option(
    "--x", "x_axis", metavar="NAME=FROM:TO",
    help="Horizontal setting: load, outage, backlog, or one of the clients. Default: load, to 0.95.",
)  # fmt: skip
@click.option(
    "--y", "y_axis", default="request.timeout.ms=1000:60000", show_default=True, metavar="NAME=FROM:TO",
    help="Vertical setting.",
)  # fmt: skip
@click.option(
    "--outage", type=click.FloatRange(1, 600), default=20, show_default=True, metavar="S",
    help="Time for which the broker is down, in s.",
)  # fmt: skip
@click.option(
    "--simulate", "simulated", type=Integer(0, 1000), default=12, show_default=True,
    help="Number of cells that the simulation runs, to check the map.",
)  # fmt: skip
@output_options
def map_command(
    fleet: Fleet, x_axis: str | None, y_axis: str, outage: float, simulated: int, out: str | None, output_format: str
) -> None:
    """Show for which values of two settings a fleet recovers from an outage of its broker, late, or never."""
    from sluice.fleet.map.grid import Base, axis, default_x, draw_map
    from sluice.fleet.map.sentences import explain
    from sluice.fleet.report.page import write_map_report

    base = Base(fleet.groups, fleet.broker, outage)
    x = default_x(base) if x_axis is None else axis("--x", x_axis)
    with progress() as report:
        found = draw_map(fleet.mix, base, x, axis("--y", y_axis), simulated=simulated, progress=runs(report))
    names = [group.name for group in fleet.groups]
    if out is not None:
        (folder(out) / "map.json").write_text(json_text(found), encoding="utf-8")
        write_map_report(folder(out) / "map.html", found, names)
    if output_format == "json":
        click.echo(json_text(found))
        return
    click.echo("\n".join([*_picture(found), *explain(found)]))
    print_caveats(names)
    if out is not None:
        click.echo(str(Path(out) / "map.html"))
    exit_if_interrupted(len(found.checked), min(simulated, len(found.x.values) * len(found.y.values)), "cells")


def _picture(found: "Map") -> list[str]:
    """Return the map as characters, every second row of it."""
    from sluice.fleet.map.grid import nearest

    labels = [f"{value:,.4g}" if value < 1000 else f"{value:,.0f}" for value in found.y.values]
    width = max(map(len, labels))
    rows = [[_CHARACTERS[region] for region in row] for row in found.regions]
    if found.point is not None:
        own_x, own_y = found.point
        column, row = nearest(found.x.values, own_x), nearest(found.y.values, own_y)
        rows[row - row % 2][column] = _POINT
    shown = [(number, rows[number]) for number in range(len(rows) - len(rows) % 2 - 2, -1, -2)]
    lines = [f"{labels[number]:>{width}} {''.join(row)}" for number, row in shown]
    first, last = f"{found.x.values[0]:g}", f"{found.x.values[-1]:g}"
    ends = f"{'':>{width}} {first}{last:>{max(len(rows[0]) - len(first), 0)}}"
    own = f"; {_POINT} your fleet" if found.point is not None else ""
    legend = f"- recovers in {found.late_s} s; o later; # not in {found.observed_s} s{own}"
    return [found.y.setting, *lines, ends, f"{'':>{width}} {found.x.setting}", legend]
