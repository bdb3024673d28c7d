"""The dashboard as a picture, drawn from the query results of a real Prometheus: docs/dashboard.png.

python -m tools.dashboard.picture [FILE]           (with Prometheus, and matplotlib from the extra `spark`)
"""

import re
import sys
from collections.abc import Sequence
from math import ceil, isnan, nan
from pathlib import Path
from tempfile import mkdtemp
from time import sleep, time
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from tests.support.broker_process import overrides, running_broker
from tools.dashboard.panels import PANELS, Panel
from tools.dashboard.prometheus import Prometheus, running_prometheus
from tools.dashboard.traffic import PROPERTIES, TOKEN, traffic

_SECONDS, _STEP_S, _RANGE = 75, 1, "5s"
_COLUMNS, _MOST_LINES = 3, 6
# Grafana's unit -> its label here, and the divisor of its values.
_UNITS = {"Bps": ("kB/s", 1000), "percentunit": ("%", 0.01), "ms": ("ms", 1), "s": ("ms", 0.001)}
_RATES = {"ops": "per second", "reqps": "per second", "short": ""}


def main(file: Path) -> None:
    """Run clients for more than a minute, and draw the panels."""
    folder = Path(mkdtemp())
    with running_broker(folder / "log", *overrides(*PROPERTIES)) as broker:
        with running_prometheus(folder / "prometheus", broker.admin, TOKEN) as prometheus:
            sleep(3)  # no traffic before
            with traffic(broker):
                sleep(_SECONDS)
            _draw(prometheus, file)
        broker.stop()


def _draw(prometheus: Prometheus, file: Path) -> None:
    mpl.use("Agg")
    plt.style.use("dark_background")
    rows = ceil(len(PANELS) / _COLUMNS)
    figure, axes = plt.subplots(rows, _COLUMNS, figsize=(16, 3.2 * rows), squeeze=False)
    figure.patch.set_facecolor("#111217")
    every = [axis for row in axes for axis in row]
    for axis, panel in zip(every, PANELS, strict=False):
        _panel(axis, panel, prometheus)
    for axis in every[len(PANELS) :]:
        axis.remove()
    figure.tight_layout()
    figure.savefig(file, dpi=80)


def _panel(axis: Any, panel: Panel, prometheus: Prometheus) -> None:
    end = time()
    unit, scale = _UNITS.get(panel.unit, (_RATES.get(panel.unit, ""), 1))
    lines: list[tuple[str, list[float], list[float]]] = []
    for query, legend in panel.queries:
        parameters = {"query": query.replace("$range", _RANGE), "start": end - _SECONDS, "end": end, "step": _STEP_S}
        for series in prometheus.query("query_range", **parameters)["result"]:
            points = [(float(at) - end + _SECONDS, float(value) / scale) for at, value in series["values"]]
            name = re.sub(r"{{(\w+)}}", lambda label: series["metric"].get(label[1], ""), legend).strip()  # noqa: B023
            lines.append((name, *_columns(points)))
    shown = sorted((line for line in lines if _largest(line[2])), key=lambda line: -_largest(line[2]))
    for name, seconds, values in shown[:_MOST_LINES]:
        axis.plot(seconds, values, linewidth=1.4, label=name)
    axis.set_title(panel.title + (f" ({unit})" if unit else ""), loc="left", fontsize=11)
    axis.set_facecolor("#181b1f")
    axis.set_xlim(0, _SECONDS)
    if panel.unit == "s":
        axis.set_yscale("log")  # joins take seconds where fetches take a fraction of a millisecond
    else:
        axis.set_ylim(0, 1.4 * max((_largest(line[2]) for line in shown), default=1))  # with room for the legend
    axis.grid(color="#2c3235", linewidth=0.6)
    axis.tick_params(labelsize=8)
    axis.legend(fontsize=7, loc="upper left", frameon=False, ncols=2)
    for edge in axis.spines.values():
        edge.set_visible(False)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Return seconds and values; a missing second makes a gap in the line."""
    known = {round(at): value for at, value in points}
    seconds = range(min(known), max(known) + 1)
    return [float(second) for second in seconds], [known.get(second, nan) for second in seconds]


def _largest(values: Sequence[float]) -> float:
    return max((value for value in values if not isnan(value)), default=0.0)


if __name__ == "__main__":
    main(Path(*(sys.argv[1:] or ["docs/dashboard.png"])))
