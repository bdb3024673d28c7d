"""The report of a plan: one HTML file with the plots in it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sluice.spark.charges.charges import Kind
from sluice.text.html_page import environment

from .analysis import Effect, Finding, Limits, Settings
from .coverage import Coverage
from .demand import Stated
from .kafka_configs_script import SCRIPT
from .recommendation import KEYS, Need, Recommendation
from .replay import Candidate
from .tables import QUARANTINE

PAGE = "report.html"
_MOST_SHOWN = 20  # clients per table
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")

Effects = dict[tuple[Kind, Candidate], Effect]


def effects_of(findings: Iterable[Finding], limits: Limits | None) -> Effects:
    found: Effects = {}
    numbers: dict[tuple[str, str], int] = {}
    for finding in findings:
        client = finding.client
        number = numbers.setdefault((client.user, client.client_id), len(numbers))
        found.setdefault((client.kind, finding.candidate), Effect()).add(number, finding, limits)
    return dict(sorted(found.items(), key=lambda each: (list(KEYS).index(each[0][0]), each[0][1][::-1])))


class Section(NamedTuple):
    """A part of the report. Names in its texts are in backticks, and `plots` are captions with SVGs."""

    title: str
    paragraphs: Sequence[str] = ()
    points: Sequence[str] = ()
    plots: Sequence[tuple[str, str]] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    marked: int = 0  # number of marked rows, the first ones


class Report(NamedTuple):
    inputs: Sequence[str]
    settings: Settings
    counts: Mapping[str, int]
    effects: Effects
    recommendations: Sequence[Recommendation]
    coverage: Coverage
    warnings: Sequence[str]


def write_report(out: Path, report: Report) -> None:
    templates = environment("sluice.spark.plan")
    templates.filters["pieces"] = _pieces
    page = templates.get_template("plan.html").render(warnings=report.warnings, sections=list(_sections(report)))
    (out / PAGE).write_text(page + "\n", encoding="utf-8")


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, and whether each is code: between any number of backticks, as in Markdown."""
    end = 0
    for match in _CODE.finditer(text):
        yield text[end : match.start()], False
        yield match[2][1:-1] if len(match[1]) > 1 else match[2], True
        end = match.end()
    yield text[end:], False


def _sections(report: Report) -> Iterable[Section]:
    from .plots import effects_plot, needs_plot

    yield Section("", [_coverage(report)])
    for found in report.recommendations:
        plot = f"{found.kind}: demand, required and recommended quotas", needs_plot(found)
        yield _recommended(found, report.settings)._replace(plots=[plot])
    if not all(found.is_empty for found in report.recommendations):
        yield Section("", [f"Run `sh {SCRIPT} BOOTSTRAP-SERVER` to set these quotas."])
    for kind in KEYS:
        effects = {candidate: effect for (of, candidate), effect in report.effects.items() if of == kind}
        if effects:
            quotas = [found for found in report.recommendations if found.kind == kind]
            svg = effects_plot(kind, effects, quotas[0] if quotas else None, report.settings.limits)
            plot = f"{kind}: throttled clients and throttle times by quota", svg
            yield _effects(effects, report.settings.limits)._replace(
                title=f"{kind}: effect of each quota", plots=[plot]
            )
    yield _input(report)


def _coverage(report: Report) -> str:
    coverage, inputs = report.coverage, ", ".join(map(_code, report.inputs))
    known, uncertain = coverage.by_confidence["known"], coverage.by_confidence["uncertain"]
    return (
        f"{coverage.seconds:,.0f} s of traffic of {coverage.clients:,} clients, from {inputs}. Demand: {known:,} known "
        f"within 10 %, {uncertain:,} uncertain, {coverage.clients - known - uncertain:,} only as a lower bound."
    )


def _input(report: Report) -> Section:
    rows = [(name, f"{number:,}") for name, number in sorted(report.counts.items()) if number]
    noted = [f"Quarantined input is in `{QUARANTINE}`, with reasons."] if report.counts.get("quarantined") else []
    return Section("Input", noted, header=("input", "count"), rows=rows)


def _promise(found: Recommendation, settings: Settings) -> str:
    limits = settings.limits
    assert limits is not None, "a recommendation requires limits"
    if not any(need.demand.is_known for need in (*found.overrides, *found.others)):
        return "The demand of no client is known, so no quota is required or recommended."
    return (
        f"With the required quotas, at most {limits.throttled_share:.1%} of each client's responses have a throttle "
        f"time, and its p99 throttle time is at most {limits.delay_p99_ms:,} ms. This assumes "
        f"`quota.profile={settings.profiles[0]}` and {_in_words(settings.loops[0])}. A recommended quota is at least "
        f"{found.headroom:.0%} above the required one (its headroom), and for an uncertain demand by its uncertainty."
    )


def _recommended(found: Recommendation, settings: Settings) -> Section:
    total, bounds = len(found.others) + len(found.overrides), len(found.others) - found.basis
    unknown = f" Whether it is sufficient for {bounds:,} other clients is not known." if bounds else ""
    if found.default is not None:
        default = (
            f"Default: `{KEYS[found.kind]}={found.default}` ({rate(found.default)} on each broker), "
            f"{found.default_headroom:.0%} above the largest need of {found.basis:,} of {total:,} clients, whose "
            f"demand is known.{unknown}"
        )
    else:
        default = f"No default: {found.why_no_default}."
    overrides = f"Overrides: {len(found.overrides)}, in the first rows." if found.overrides else "Overrides: none."
    shown = [*found.overrides[:_MOST_SHOWN], *found.others[: max(0, _MOST_SHOWN - len(found.overrides))]]
    return Section(
        f"{found.kind}: recommendation",
        [_promise(found, settings)],
        [default, overrides],
        header=(
            "client", "required quota", "recommended (headroom)", "demand", "p99 throttle time", "throttled responses",
            "broker",
        ),
        rows=[_cells(need, found, number < len(found.overrides)) for number, need in enumerate(shown)],
        marked=len(found.overrides),
    )  # fmt: skip


def _cells(need: Need, found: Recommendation, is_override: bool) -> list[str]:
    name = _code(" ".join(each for each in (need.user, need.client_id) if each) or "(no id)")
    quota = need.recommended(found.headroom) if is_override else found.default
    is_known = need.demand.is_known
    details = [] if is_override else ["default"]
    if is_known and quota is not None:
        details.append(f"+{quota / need.quota - 1:.0%}")
    return [
        name,
        rate(need.quota) if is_known else "not known",
        f"{rate(quota)} ({', '.join(details)})" if quota is not None else "none",
        demand_in_words(need.demand),
        f"{need.delay_p99_ms:,} ms" if is_known else "",
        f"{need.throttled_share:.1%}" if is_known else "",
        _code(need.broker) + (f" of {need.brokers:,}" if need.brokers > 1 else ""),
    ]


def demand_in_words(demand: Stated) -> str:
    if demand.is_known:
        return f"{rate(demand.rate)} ± {demand.uncertainty:.0%}"
    return f"at least {rate(demand.rate)} ({demand.confidence})" if demand.rate >= 1 else f"({demand.confidence})"


def _effects(effects: Mapping[Candidate, Effect], limits: Limits | None) -> Section:
    beyond = ["beyond limits"] if limits is not None else []
    varied = [name for name in ("profile", "loop") if len({getattr(candidate, name) for candidate in effects}) > 1]
    rows = []
    for candidate, effect in effects.items():
        rows.append([
            rate(candidate.quota), *(str(getattr(candidate, name)) for name in varied),
            f"{len(effect.throttled_clients):,} of {len(effect.clients):,}",
            *([f"{len(effect.beyond_limits):,}"] if beyond else []),
            f"{effect.throttled / max(1, effect.answers):.2%}", f"{effect.worst_delay_p99_ms:,} ms",
            f"{effect.worst_added_p99_ms:,} ms", rate(effect.lost_rate),
        ])  # fmt: skip
    header = (
        "quota", *varied, "throttled clients", *beyond, "throttled responses", "worst p99 throttle time",
        "worst p99 added latency", "lost throughput",
    )  # fmt: skip
    return Section("", header=header, rows=rows)


def rate(per_s: float) -> str:
    for unit, name in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        if per_s >= unit:
            return f"{per_s / unit:.3g} {name}"
    return f"{per_s:.0f} B/s"


def _in_words(loop: str) -> str:
    return "a closed loop (throttled clients pause)" if loop == "closed" else "an open loop (clients keep sending)"


def _code(text: str) -> str:
    """Return any text as inline code."""
    shown = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
    ticks = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    blank = " " * (len(ticks) > 1)
    return f"{ticks}{blank}{shown}{blank}{ticks}"
