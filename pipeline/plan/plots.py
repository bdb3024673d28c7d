"""The plots of a plan's report, as SVG."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from sluice.pipeline.charges.charges import Kind

from .analysis import Effect
from .recommendation import Recommendation
from .replay import Candidate

_MOST_BARS = 30
_SIZE_INCHES = (8, 4)


def plot_effects(file: Path, kind: Kind, effects: Mapping[Candidate, Effect]) -> None:
    """Plot throttled clients and throttle times by quota; a line for each profile and loop."""
    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    clients, delays = figure.subplots(1, 2)
    for name in dict.fromkeys((candidate.profile, candidate.loop) for candidate in effects):
        of_name = [(each.quota, effect) for each, effect in effects.items() if (each.profile, each.loop) == name]
        quotas = [quota for quota, _ in of_name]
        clients.plot(
            quotas, [len(effect.throttled_clients) for _, effect in of_name], marker="o", label=", ".join(name)
        )
        delays.plot(quotas, [effect.worst_delay_p99_ms for _, effect in of_name], marker="o")
    clients.set(ylabel="throttled clients")
    delays.set(ylabel="worst p99 throttle time (ms)", yscale="symlog")
    for axes in (clients, delays):
        axes.set(xlabel=f"{kind} quota (bytes/s)", xscale="log", ylim=(0, None))
        tried = sorted({candidate.quota for candidate in effects})
        axes.set_xticks(tried, map(EngFormatter(sep=""), tried), rotation=45)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    clients.legend()
    _write(file, figure)


def plot_needs(file: Path, found: Recommendation) -> None:
    needs = (found.overrides + found.others)[:_MOST_BARS]
    figure = Figure(figsize=(_SIZE_INCHES[0], 1.2 + 0.22 * len(needs)), layout="constrained")
    axes = figure.subplots()
    names = [_name(need.user, need.client_id) for need in needs]
    colours = ["tab:orange" if need.quota > found.default else "tab:blue" for need in needs]
    axes.barh(range(len(needs)), [need.quota for need in needs], color=colours)
    axes.set_yticks(range(len(needs)), names, parse_math=False)
    axes.invert_yaxis()
    axes.axvline(found.default, color="black", linewidth=1, label="default")
    axes.xaxis.set_major_formatter(EngFormatter())
    axes.set(xlabel=f"required {found.kind} quota (bytes/s on each broker)")
    axes.legend()
    _write(file, figure)


def _name(user: str, client_id: str) -> str:
    name = " ".join(each for each in (user, client_id) if each) or "(no id)"
    shown = "".join(char if char.isprintable() else "?" for char in name)
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


def _write(file: Path, figure: Figure) -> None:
    FigureCanvasSVG(figure)
    figure.savefig(file, format="svg", metadata={"Date": None})
