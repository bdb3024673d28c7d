"""The speed of a sweep of 500 cells on `local[2]` of Spark, compared with one process, whose rows are the same."""

import argparse
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TypeVar

from sluice.fleet.models.mix import parse_mix
from sluice.fleet.simulation.broker import BROKERS
from sluice.fleet.spark_sweep import sweep_on
from sluice.fleet.sweep import Axes, Cell, cells_of, run_cell
from sluice.pipeline.session import open_session_without_kafka

T = TypeVar("T")

_FLEETS = "kafka-4.4", "kip-580-before"
_OUTAGES_S, _LOADS = (1, 2, 5, 10, 20), (0.2, 0.3, 0.4, 0.5, 0.6)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fleet.sweep", description=__doc__)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    cells = _cells(arguments.clients, arguments.seeds)
    print(f"{len(cells)} cells of {arguments.clients} clients")
    one_s, alone = _timed(lambda: [run_cell(cell) for cell in cells])
    print(f"one process: {one_s:.1f} s, {one_s / len(cells) * 1000:.0f} ms per cell")
    start_s, spark = _timed(lambda: open_session_without_kafka("bench", master="local[2]"))
    print(f"start of Spark: {start_s:.1f} s")
    for name in ("first", "second"):
        spark_s, rows = _timed(partial(sweep_on, spark, cells))
        with_start = f", with its start {one_s / (spark_s + start_s):.2f}" if name == "first" else ""
        print(f"Spark, {name} sweep: {spark_s:.1f} s, ratio {one_s / spark_s:.2f}{with_start}")
        assert rows == alone, "the rows differ"
    spark.stop()


def _cells(clients: int, seeds: int) -> list[Cell]:
    fleets = {f"{name}:{clients}": parse_mix(f"{name}:{clients}") for name in _FLEETS}
    return cells_of(Axes(fleets, _OUTAGES_S, _LOADS), BROKERS["kafka"], seeds=range(seeds))


def _timed(run: Callable[[], T]) -> tuple[float, T]:
    began = perf_counter()
    found = run()
    return perf_counter() - began, found


if __name__ == "__main__":
    main()
