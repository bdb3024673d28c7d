"""The self-contained HTML report of results, and of a sweep."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from sluice.fleet.map.grid import Map
from sluice.fleet.map.sentences import border, error, own_point
from sluice.fleet.models.presets import caveats
from sluice.fleet.results import Figures, Result, figures_of, summary
from sluice.fleet.simulation.quota import Fairness
from sluice.fleet.sweep import Row
from sluice.text.html_page import environment

from . import sentences
from .plots import attempts_plot, bytes_plot, comparison_plot, outcomes_plot, queue_plot, recovery_map, return_map

ROWS = (
    ("before_per_s", "attempts per second before the failure", "{:,.0f}"),
    ("peak_per_s", "most attempts in one second", "{:,.0f}"),
    ("disturbed_s", "seconds with fewer, or much later, operations than before", "{:,.0f}"),
    ("amplification", "attempts over those without the failure, until recovery", "{:.2f}"),
    ("queue_peak_ms", "longest mean time in a broker's queue, ms", "{:,.1f}"),
    ("completed", "completed operations", "{:,.0f}"),
    ("expired", "operations that failed by delivery.timeout.ms", "{:,.0f}"),
)


def describe(figures: Sequence[Figures], fairness: Sequence[Fairness] = ()) -> list[tuple[str, str]]:
    found = summary(figures)
    rows = [(label, _with_range(form, *found[name])) for name, label, form in ROWS]
    rows.insert(4, ("seconds from the end of the failure to recovery", recovery(figures)))
    if any(each.lag_peak for each in figures):
        rows.append(("most records that consumers had not received", _with_range("{:,.0f}", *found["lag_peak"])))
    if any(each.dropped_syns for each in figures):
        rows.append(("dropped SYNs", _with_range("{:,.0f}", *found["dropped_syns"])))
    for label, form, values in (
        ("fairness of the quota (Jain's index)", "{:.3f}", sorted(each.jain for each in fairness)),
        ("99th percentile of throttle times, ms", "{:,.0f}", sorted(each.throttle_p99_ms for each in fairness)),
    ):
        if values:
            rows.append((label, _with_range(form, values[0], values[len(values) // 2], values[-1])))
    return rows


def recovery(figures: Sequence[Figures]) -> str:
    times = sorted(each.recovery_s for each in figures if each.recovery_s is not None)
    lost = len(figures) - len(times)
    if not times:
        return "not within the run"
    text = _with_range("{:,.0f}", times[0], times[len(times) // 2], times[-1])
    return f"{text}; {lost} of {len(figures)} seeds did not recover" if lost else text


def write_report(file: Path, results: Sequence[Result], names: Sequence[str]) -> None:
    """Write the report of one result, or of a comparison."""
    tables = [describe(figures_of(result), result.fairness) for result in results]
    labels = list(dict.fromkeys(label for table in tables for label, _ in table))
    page = (
        environment("sluice.fleet.report")
        .get_template("report.html")
        .render(
            title=" and ".join(names),
            results=list(zip(results, names, strict=True)),
            labels=labels,
            caveats=caveats(group.name for result in results for group in result.groups),
            columns=[[dict(table).get(label, "") for label in labels] for table in tables],
            comparison=(comparison_plot(results, names), list(map(sentences.attempts_sentence, results))),
            queues=(queue_plot(results, names), list(map(sentences.queue_sentence, results))),
            throughput=(bytes_plot(results, names), list(map(sentences.bytes_sentence, results)))
            if any(result.fairness for result in results)
            else None,
            plots=[
                (
                    name,
                    (attempts_plot(result), sentences.kinds_sentence(result)),
                    (outcomes_plot(result), sentences.outcomes_sentence(result)),
                )
                for result, name in zip(results, names, strict=True)
            ],
        )
    )
    file.write_text(page, encoding="utf-8")


def write_sweep_report(file: Path, rows: Sequence[Row], models: Iterable[str], brokers: int) -> None:
    fleets = list(dict.fromkeys(row.fleet for row in rows))
    page = (
        environment("sluice.fleet.report")
        .get_template("sweep.html")
        .render(
            maps=[(recovery_map(rows, fleet), sentences.sweep_sentence(rows, fleet, brokers)) for fleet in fleets],
            caveats=caveats(models),
        )
    )
    file.write_text(page, encoding="utf-8")


def write_map_report(file: Path, found: Map, models: Iterable[str]) -> None:
    page = (
        environment("sluice.fleet.report")
        .get_template("map.html")
        .render(
            map=found,
            plot=return_map(found),
            own_point=own_point(found),
            border=border(found),
            error=error(found),
            caveats=caveats(models),
        )
    )
    file.write_text(page, encoding="utf-8")


def _with_range(form: str, low: float, middle: float, high: float) -> str:
    if form.format(low) == form.format(high):
        return form.format(middle)
    return f"{form.format(middle)} ({form.format(low)} to {form.format(high)})"
