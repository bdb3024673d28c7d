"""The plots of a plan's reports, as SVG text."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from io import StringIO

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator

from sluice.spark.charges.charges import Kind

from .analysis import Effect, Limits
from .recommendation import Recommendation
from .replay import Candidate

_MOST_BARS = 30
_WIDTH_INCHES = 5  # on a phone, letters keep three quarters of their size
_MOST_LABELS = 4  # of rates beside each other
_WIDE_RANGE = 50  # above this ratio of the needs, their axis is logarithmic
_LEAST_DISTANCE = 0.06  # between two labels: the height of a line, as a share of the axis
_RATE = EngFormatter(unit="B/s")


def effects_plot(
    kind: Kind, effects: Mapping[Candidate, Effect], found: Recommendation | None, limits: Limits | None
) -> str:
    """Return throttled clients and throttle times by quota; a line for each profile and loop."""
    with _style():
        figure = Figure(figsize=(_WIDTH_INCHES, 5.4), layout="constrained")
        clients, delays = figure.subplots(2, 1, sharex=True)
        names = list(dict.fromkeys((candidate.profile, candidate.loop) for candidate in effects))
        for name in names:
            of_name = [(each.quota, effect) for each, effect in effects.items() if (each.profile, each.loop) == name]
            quotas = [quota for quota, _ in of_name]
            throttled = [len(effect.throttled_clients) for _, effect in of_name]
            clients.plot(quotas, throttled, marker="o", label=", ".join(name))
            delays.plot(quotas, [effect.worst_delay_p99_ms for _, effect in of_name], marker="o")
        worst = max(
            1, limits.delay_p99_ms if limits else 1, *(effect.worst_delay_p99_ms for effect in effects.values())
        )
        total = max(len(effect.clients) for effect in effects.values())
        clients.set(ylabel=f"throttled clients, of {total:,}", ylim=(0, total * 1.05))
        clients.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        delays.set_yscale("symlog", linthresh=1)
        delays.set(ylabel="worst p99 throttle time", ylim=(0, 3 * worst), xlabel=f"{kind} quota on each broker")
        delays.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms:g} ms" if ms < 1000 else f"{ms / 1000:g} s"))
        if limits is not None:
            delays.axhline(
                limits.delay_p99_ms, color="tab:red", linestyle=":", label=f"limit: {limits.delay_p99_ms:,} ms"
            )
        for axes in (clients, delays):
            axes.set_xscale("log")
            _mark_quota(axes, found)
            axes.grid(alpha=0.3)
        tried = sorted({candidate.quota for candidate in effects})
        delays.set_xticks(tried, _labels(tried), rotation=45, ha="right")
        delays.minorticks_off()
        lines = {
            label: line
            for axes in (clients, delays)
            for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(lines.values(), lines.keys(), loc="outside upper left", ncols=2, frameon=False)
        return _svg(figure)


def _labels(quotas: Sequence[float]) -> list[str]:
    """Return the labels of ascending positions on a logarithmic axis, "" for those that would overlap."""
    least = (quotas[-1] / quotas[0]) ** _LEAST_DISTANCE
    labels, last = [], 0.0
    for quota in quotas:
        shown = not last or quota >= last * least
        labels.append(_RATE(quota) if shown else "")
        last = quota if shown else last
    return labels


def _mark_quota(axes: Axes, found: Recommendation | None) -> None:
    if found is None or found.is_empty:
        return
    quota, what = found.default, "default"
    if quota is None:
        quota, what = found.overrides[0].recommended(found.headroom), "largest override"
    axes.axvline(quota, color="black", linestyle="--", linewidth=1.2, label=f"{what}: {_RATE(quota)}")


def needs_plot(found: Recommendation) -> str:
    needs = [*found.overrides, *found.others][:_MOST_BARS]
    with _style():
        figure = Figure(figsize=(_WIDTH_INCHES, 1.7 + 0.26 * len(needs)), layout="constrained")
        axes = figure.subplots()
        rows = range(len(needs))
        known = [row for row in rows if needs[row].demand.is_known]
        bounds = [row for row in rows if not needs[row].demand.is_known]
        if known:
            axes.barh(known, [needs[row].quota for row in known], color="#9ecae1", label="required quota")
        for which, color, label in ((known, "#2171b5", "average demand"), (bounds, "#969696", "demand, at least")):
            if which:
                axes.barh(which, [needs[row].demand.rate for row in which], height=0.35, color=color, label=label)
        marked = [need.recommended(found.headroom) for need in needs[: len(found.overrides)]]
        if marked:
            axes.plot(
                marked, rows[: len(marked)], "|", markersize=13, markeredgewidth=2.5, color="#d94801", label="override"
            )
        if found.default is not None:
            axes.axvline(
                found.default, color="black", linestyle="--", linewidth=1.2, label=f"default: {_RATE(found.default)}"
            )
        axes.set_yticks(rows, [_name(need.user, need.client_id) for need in needs], parse_math=False)
        axes.set_ylim(len(needs) - 0.5, -0.5)
        quotas = [need.quota if need.demand.is_known else max(1, need.demand.rate) for need in needs]
        if max(quotas) > _WIDE_RANGE * min(quotas):
            axes.set_xscale("log")
            axes.set_xlim(left=min(quotas) / 3)
            axes.xaxis.set_major_locator(LogLocator(numticks=_MOST_LABELS))
            axes.minorticks_off()
        else:
            axes.xaxis.set_major_locator(MaxNLocator(_MOST_LABELS))
        axes.xaxis.set_major_formatter(_RATE)
        axes.grid(alpha=0.3, axis="x")
        axes.set_axisbelow(True)
        axes.set(xlabel=f"{found.kind} rate on one broker")
        figure.legend(loc="outside upper left", ncols=2, frameon=False)
        return _svg(figure)


def _name(user: str, client_id: str) -> str:
    name = " ".join(each for each in (user, client_id) if each) or "(no id)"
    shown = "".join(char if char.isprintable() else "?" for char in name)
    return shown if len(shown) <= 24 else f"{shown[:23]}…"


def _style() -> AbstractContextManager[None]:
    # No random ids, so that the same plot has the same text.
    return mpl.rc_context({"svg.hashsalt": "sluice", "svg.fonttype": "none", "font.size": 10})


def _svg(figure: Figure) -> str:
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]
