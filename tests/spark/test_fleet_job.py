"""A sweep on Spark has the same rows as in processes."""

from typing import TYPE_CHECKING

from sluice.fleet.models.mix import parse_mix
from sluice.fleet.simulation.broker import BROKERS
from sluice.fleet.spark_sweep import sweep_on
from sluice.fleet.sweep import Axes, cells_of, run_cell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_are_those_of_one_process(spark: "SparkSession") -> None:
    axes = Axes({"small": parse_mix("kafka-4.4:30"), "old": parse_mix("kip-580-before:30")}, [2.0], [0.3, 0.5])
    cells = cells_of(axes, BROKERS["kafka"], seeds=(0, 1))
    assert sweep_on(spark, cells) == [run_cell(cell) for cell in cells]
