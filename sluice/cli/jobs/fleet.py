"""`sluice pipeline fleet`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import click

from sluice.cli.commands import Command
from sluice.cli.fleet.sweep import SweepOptions, run_sweep, sweep_options
from sluice.cli.pipeline import CONF, MASTER
from sluice.spark.session import open_session_without_kafka

if TYPE_CHECKING:
    from sluice.fleet.sweep import Cell, Row


@click.command(cls=Command)
@sweep_options
@MASTER
@CONF
def fleet(master: str, conf: dict[str, str], **options: Unpack[SweepOptions]) -> None:
    """Simulate a grid of outages and loads as `sluice fleet sweep` does, with several cells in a Spark task."""

    def run_on_spark(cells: "Sequence[Cell]") -> "list[Row]":
        from sluice.fleet.spark_sweep import sweep_on

        return sweep_on(open_session_without_kafka("sluice fleet", master=master, settings=conf), cells)

    run_sweep(run_on_spark, options)
