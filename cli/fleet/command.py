"""`sluice fleet`: simulate what thousands to millions of clients do when a broker fails."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sluice.cli.commands import Command, Group, Integer
from sluice.cli.completion_values import scenarios_and_files
from sluice.cli.options import format_option
from sluice.cli.progress import progress
from sluice.cli.text_table import table
from sluice.errors import ConfigError, SluiceError
from sluice.text.error_text import expected
from sluice.text.json_text import json_text

if TYPE_CHECKING:
    from sluice.fleet.results import Result

_NEEDED = ("jinja2", "matplotlib", "numpy", "pyarrow")
_FLEET = "Clients, as MODEL:CLIENTS separated by commas; models: kafka-4.4, kip-580-before."


def _broker_options(command: click.decorators.FC) -> click.decorators.FC:
    kind = click.option(
        "--broker", type=click.Choice(["kafka", "sluice"]), default="kafka", show_default=True,
        help="Broker whose measured CPU time per request is used.",
    )  # fmt: skip
    settings = click.option(
        "--set", "settings", multiple=True, metavar="NAME=VALUE",
        help="Setting of all models, or of one as MODEL.NAME=VALUE, such as retry.backoff.max.ms=5000; repeatable.",
    )  # fmt: skip
    seeds = click.option("--seeds", type=Integer(1, 1000), default=3, show_default=True, help="Number of runs.")
    out = click.option("--out", metavar="DIR", help="Folder for the report and all results.")
    return kind(settings(seeds(out(format_option(command)))))


@click.group(cls=Group)
def fleet() -> None:
    """Simulate what thousands to millions of clients do when a broker fails."""


@fleet.command(cls=Command)
@click.argument("scenario", metavar="FILE|NAME", shell_complete=scenarios_and_files)
@click.option("--fleet", "mix", required=True, metavar="MODEL:CLIENTS,...", help=_FLEET)
@click.option(
    "--capacity", type=click.FloatRange(0, min_open=True), metavar="N",
    help="Produce requests per second that each broker can serve; other costs in proportion.",
)  # fmt: skip
@click.option("--cold", is_flag=True, help="Start clients without connections.")
@_broker_options
def run(
    scenario: str,
    mix: str,
    capacity: float | None,
    cold: bool,
    broker: str,
    settings: tuple[str, ...],
    seeds: int,
    out: str | None,
    output_format: str,
) -> None:
    """Simulate a fleet in a scenario, from a file or by a name of `sluice scenario list`."""
    _ensure_installed()
    from sluice.broker.scenarios.files import load
    from sluice.fleet.broker import BROKERS
    from sluice.fleet.models.mix import parse_mix
    from sluice.fleet.results import write
    from sluice.fleet.run import run_fleet

    groups = parse_mix(mix, settings)
    model = BROKERS[broker] if capacity is None else BROKERS[broker].scaled_to(capacity)
    with progress() as report:
        found = run_fleet(load(scenario), groups, model, seeds=range(seeds), cold=cold, progress=_runs(report))
    if out is not None:
        write(found, _folder(out))
    _show([found], [mix], out, output_format)


@fleet.command(cls=Command)
@click.argument("results", nargs=-1, required=True, metavar="RESULT...")
@click.option("--out", metavar="DIR", help="Folder for the report.")
@format_option
def compare(results: tuple[str, ...], out: str | None, output_format: str) -> None:
    """Compare results of `sluice fleet run --out`. RESULT is a result.json, or its folder."""
    _ensure_installed()
    from sluice.fleet.results import read

    if len(results) < 2:
        raise click.UsageError(f"RESULT: {expected('at least two results', len(results))}")
    _show([read(Path(path)) for path in results], [Path(path).name for path in results], out, output_format)


@fleet.command(cls=Command)
@click.option(
    "--fleet", "mixes", required=True, multiple=True, metavar="MODEL:CLIENTS,...", help=f"{_FLEET} Repeatable."
)
@click.option("--outages", default="5,20,60", show_default=True, metavar="S,...", help="Outages of one broker, in s.")
@click.option(
    "--loads", default="0.3,0.5,0.65", show_default=True, metavar="SHARE,...",
    help="Shares of the brokers' capacity that the fleet uses before the outage.",
)  # fmt: skip
@click.option("--brokers", type=Integer(1, 100), default=3, show_default=True, help="Number of brokers.")
@_broker_options
def sweep(
    mixes: tuple[str, ...],
    outages: str,
    loads: str,
    brokers: int,
    broker: str,
    settings: tuple[str, ...],
    seeds: int,
    out: str | None,
    output_format: str,
) -> None:
    """Simulate a grid of outages and loads, and show which of them a fleet recovers from."""
    _ensure_installed()
    from sluice.fleet.broker import BROKERS
    from sluice.fleet.models.mix import parse_mix
    from sluice.fleet.report import write_sweep_report
    from sluice.fleet.sweep import Axes, write_rows
    from sluice.fleet.sweep import sweep as run_sweep

    axes = Axes(
        {mix: parse_mix(mix, settings) for mix in mixes}, _numbers("--outages", outages), _numbers("--loads", loads)
    )
    with progress() as report:
        rows = run_sweep(axes, BROKERS[broker], brokers=brokers, seeds=range(seeds), progress=_runs(report))
    if out is not None:
        write_rows(rows, _folder(out))
        write_sweep_report(_folder(out) / "sweep.html", rows)
    if output_format == "json":
        click.echo(json_text(rows))
        return
    heads = ("FLEET", "OUTAGE", "LOAD", "SEED", "PEAK/S", "ATTEMPTS", "DISTURBED", "RECOVERED AFTER")
    texts = [
        (
            row.fleet, f"{row.outage_s:g} s", f"{row.load:g}", str(row.seed), f"{row.peak_per_s:,.0f}",
            f"{row.amplification:.2f}x", f"{row.disturbed_s} s",
            "never" if row.recovery_s < 0 else f"{row.recovery_s} s",
        )
        for row in rows
    ]  # fmt: skip
    click.echo("\n".join(table(heads, texts)))


def _show(results: "list[Result]", names: list[str], out: str | None, output_format: str) -> None:
    from sluice.fleet.report import describe, write_report
    from sluice.fleet.results import figures_of

    if out is not None:
        write_report(_folder(out) / "report.html", results, names)
    figures = [figures_of(result) for result in results]
    if output_format == "json":
        documents = [
            {"name": name, "seeds": [each._asdict() for each in found]}
            for name, found in zip(names, figures, strict=True)
        ]
        click.echo(json_text(documents))
        return
    columns = [describe(found) for found in figures]
    rows = [(label, *(column[row][1] for column in columns)) for row, (label, _) in enumerate(columns[0])]
    click.echo("\n".join(table(("FIGURE", *names), rows)))
    if out is not None:
        click.echo(str(Path(out) / "report.html"))


def _runs(report: Callable[[str, int, int], None]) -> Callable[[int, int], None]:
    return lambda done, of: report("runs", done, of)


def _folder(out: str) -> Path:
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SluiceError(f"--out {out}: {error.strerror}") from None
    return folder


def _numbers(option: str, text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < number < 1e6 for number in found):
        raise ConfigError(f"{option}: {expected('numbers above 0, separated by commas', text)}")
    return found


def _ensure_installed() -> None:
    for module in _NEEDED:
        if find_spec(module) is None:
            raise SluiceError(f"{module} is not installed; run pip install 'kafka-sluice[fleet]'")
