"""The plots of a fleet's report, as SVG texts for a page."""

from collections.abc import Sequence
from io import StringIO

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

from sluice.fleet.map.grid import REGIONS, Map, Region
from sluice.fleet.results import ATTEMPTS, Result, by_second
from sluice.fleet.simulation.arrays import US_PER_MS, Floats
from sluice.fleet.simulation.counters import Count
from sluice.fleet.sweep import Row

_WIDTH_INCHES, _HEIGHT_INCHES = 9.0, 3.2
_MAP_INCHES = 6.2  # its texts can be read on a phone
_SHOWN = (
    ("Produce requests", Count.PRODUCE_REQUESTS), ("Produce retries", Count.PRODUCE_RETRIES),
    ("Metadata requests", Count.METADATA_REQUESTS), ("connections", Count.CONNECTIONS),
)  # fmt: skip
_SHOWN_OF_CONSUMERS = (("Fetch requests", Count.FETCH_REQUESTS), ("heartbeats", Count.HEARTBEATS))


def attempts_plot(result: Result) -> str:
    counts = _seconds(result)
    axes, figure = _axes("attempts per second, all clients")
    for label, kind in (*_SHOWN, *(each for each in _SHOWN_OF_CONSUMERS if counts[:, :, each[1]].any())):
        _band(axes, counts[:, :, kind], label)
    return _finish(figure, axes, [result])


def outcomes_plot(result: Result) -> str:
    counts = _seconds(result)
    axes, figure = _axes("operations per second")
    _band(axes, counts[:, :, Count.COMPLETED], "completed")
    _band(axes, counts[:, :, Count.EXPIRED], "failed by delivery.timeout.ms")
    if counts[:, :, Count.FETCHED].any():
        _band(axes, counts[:, :, Count.FETCHED], "received by consumers")
        _band(axes, counts[:, :, Count.LAG], "not yet received by consumers")
    return _finish(figure, axes, [result])


def queue_plot(results: Sequence[Result], names: Sequence[str]) -> str:
    axes, figure = _axes("mean time in the broker (ms)")
    for result, name in zip(results, names, strict=True):
        counts = _seconds(result)
        _band(axes, counts[:, :, Count.QUEUED_US] / np.maximum(counts[:, :, Count.SERVED], 1) / US_PER_MS, name)
    return _finish(figure, axes, results)


def bytes_plot(results: Sequence[Result], names: Sequence[str]) -> str:
    """Return the bytes of Produce requests per second, with the burst of a quota's first ten seconds."""
    axes, figure = _axes("bytes per second, all clients")
    for result, name in zip(results, names, strict=True):
        _band(axes, _seconds(result)[:, :, Count.BYTES], name)
    return _finish(figure, axes, results)


def comparison_plot(results: Sequence[Result], names: Sequence[str]) -> str:
    axes, figure = _axes("connections and requests per second")
    for result, name in zip(results, names, strict=True):
        _band(axes, _seconds(result)[:, :, ATTEMPTS].sum(axis=2), name)
    return _finish(figure, axes, results)


def _seconds(result: Result) -> Floats:
    return np.array([by_second(counts) for counts in result.array()], dtype=np.float64)


def _axes(label: str) -> tuple[Axes, Figure]:
    figure = Figure(figsize=(_WIDTH_INCHES, _HEIGHT_INCHES), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel="seconds since the start", ylabel=label)
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(alpha=0.3)
    return axes, figure


def _band(axes: Axes, by_seed: Floats, label: str) -> None:
    at = np.arange(by_seed.shape[1])
    (line,) = axes.step(at, np.median(by_seed, axis=0), where="post", linewidth=1.4, label=label)
    axes.fill_between(
        at, by_seed.min(axis=0), by_seed.max(axis=0), step="post", alpha=0.25, color=line.get_color(), linewidth=0
    )


def _finish(figure: Figure, axes: Axes, results: Sequence[Result]) -> str:
    first = results[0]
    if first.trigger_ms < first.healed_ms:
        axes.axvspan(first.trigger_ms / 1000, first.healed_ms / 1000, color="tab:red", alpha=0.08, label="failure")
    axes.set_xlim(0, len(first.counts[0]) * first.bin_ms / 1000)
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right", fontsize="small")
    return _svg(figure)


def _svg(figure: Figure) -> str:
    text = StringIO()
    with rc_context({"svg.hashsalt": "fleet"}):  # with the same ids and no date, equal results have equal plots
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def recovery_map(rows: Sequence[Row], fleet: str) -> str:
    """Return a map of the time to recovery by outage and load; cells without recovery are hatched."""
    found = [row for row in rows if row.fleet == fleet]
    outages, loads = sorted({row.outage_s for row in found}), sorted({row.load for row in found})
    cells = np.zeros((len(outages), len(loads)))
    lost = np.zeros_like(cells)
    for row in found:
        at = outages.index(row.outage_s), loads.index(row.load)
        cells[at] = max(cells[at], row.disturbed_s)
        lost[at] += row.recovery_s < 0
    figure = Figure(figsize=(_WIDTH_INCHES / 2, _HEIGHT_INCHES), layout="constrained")
    axes = figure.subplots()
    longest = max(row.disturbed_s for row in rows)
    image = axes.imshow(cells, origin="lower", aspect="auto", cmap="YlOrRd", vmin=0, vmax=longest)
    for (y, x), seconds in np.ndenumerate(cells):
        text = "never" if lost[y, x] else f"{seconds:.0f}"
        axes.text(
            x,
            y,
            text,
            ha="center",
            va="center",
            fontsize="small",
            color="black" if seconds < longest * 0.6 else "white",
        )
        if lost[y, x]:
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, hatch="///", linewidth=0))
    axes.set(xlabel="load, share of the capacity", ylabel="outage (s)", title=fleet)
    axes.set_xticks(range(len(loads)), [f"{load:g}" for load in loads])
    axes.set_yticks(range(len(outages)), [f"{outage:g}" for outage in outages])
    figure.colorbar(image, label="disturbed seconds")
    return _svg(figure)


_REGION_COLOURS: dict[Region, str] = {"recovers": "#d5ead8", "late": "#fbe3a4", "never": "#e8a5a0"}


def return_map(found: Map) -> str:
    """Return the regions of a map, the simulated cells, and the point of the fleet."""
    figure = Figure(figsize=(_MAP_INCHES, _MAP_INCHES * 0.75), layout="constrained")
    axes = figure.subplots()
    numbers = np.array([[REGIONS.index(region) for region in row] for row in found.regions])
    colours = ListedColormap([_REGION_COLOURS[region] for region in REGIONS])
    axes.pcolormesh(
        found.x.values, found.y.values, numbers, cmap=colours, vmin=-0.5, vmax=2.5, shading="nearest", rasterized=True
    )
    axes.set_xlim(found.x.values[0], found.x.values[-1])
    axes.set_ylim(found.y.values[0], found.y.values[-1])
    for each, scale, set_scale in (
        (found.x, axes.xaxis, axes.set_xscale), (found.y, axes.yaxis, axes.set_yscale),
    ):  # fmt: skip
        if each.is_logarithmic:
            set_scale("log")
            scale.set_major_locator(LogLocator(subs=(1, 2, 5)))
            scale.set_minor_formatter(NullFormatter())
        scale.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    names = {
        "recovers": f"recovers within {found.late_s} s", "late": f"recovers within {found.observed_s} s",
        "never": "does not recover",
    }  # fmt: skip
    handles: list[Artist] = [Patch(color=_REGION_COLOURS[region], label=names[region]) for region in REGIONS]
    for agrees, marker, label in ((True, "o", "simulated: the same"), (False, "x", "simulated: differs")):
        chosen = [each for each in found.checked if each.agrees is agrees]
        if chosen:
            at = [each.x for each in chosen], [each.y for each in chosen]
            handles += axes.plot(*at, marker, color="#444", markersize=5, fillstyle="none", label=label, clip_on=False)
    if found.point is not None:
        handles += axes.plot(
            *([value] for value in found.point), "*", color="black", markersize=15, label="your fleet", clip_on=False
        )
    units = {"load": "load, share of the capacity", "outage": "outage (s)"}
    axes.set(xlabel=units.get(found.x.setting, found.x.setting), ylabel=units.get(found.y.setting, found.y.setting))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize="small")
    return _svg(figure)
