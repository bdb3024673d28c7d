"""The report of a plan: a Markdown page with plots, from the tables in the folder."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sluice.pipeline.charges.charges import Kind

from .analysis import Effect, Finding, Limits, Settings
from .kafka_configs_script import SCRIPT
from .recommendation import KEYS, Need, Recommendation
from .replay import Candidate
from .tables import QUARANTINE

REPORT = "report.md"
_MOST_SHOWN = 20  # clients per table


Effects = dict[tuple[Kind, Candidate], Effect]


def effects_of(findings: Iterable[Finding], limits: Limits | None) -> Effects:
    """Return the effects by kind and candidate, sorted by quota."""
    found: Effects = {}
    numbers: dict[tuple[str, str], int] = {}
    for finding in findings:
        client = finding.client
        number = numbers.setdefault((client.user, client.client_id), len(numbers))
        found.setdefault((client.kind, finding.candidate), Effect()).add(number, finding, limits)
    return dict(sorted(found.items(), key=lambda each: (list(KEYS).index(each[0][0]), each[0][1][::-1])))


class Report(NamedTuple):
    inputs: Sequence[str]
    settings: Settings
    counts: Mapping[str, int]
    effects: Effects
    recommendations: Sequence[Recommendation]


def write_report(out: Path, report: Report) -> None:
    from .plots import plot_effects, plot_needs  # deferred: importing matplotlib takes a second

    lines = ["# Quota plan", "", *_input(report)]
    for found in report.recommendations:
        plot = f"needs-{found.kind.lower()}.svg"
        plot_needs(out / plot, found)
        lines += ["", *_recommended(found, report.settings), "", f"![Required quota of each client]({plot})"]
    if report.recommendations:
        lines += ["", f"Run `sh {SCRIPT} BOOTSTRAP-SERVER` to set these quotas."]
    for kind in KEYS:
        effects = {candidate: effect for (of, candidate), effect in report.effects.items() if of == kind}
        if effects:
            plot = f"candidates-{kind.lower()}.svg"
            plot_effects(out / plot, kind, effects)
            lines += ["", f"## {kind}: effect of each quota", "", *_effects(effects, report.settings.limits)]
            lines += ["", f"![Effect of each quota]({plot})"]
    (out / REPORT).write_text("\n".join([*lines, ""]), encoding="utf-8")


def _input(report: Report) -> list[str]:
    lines = [f"Input: {', '.join(map(_code, report.inputs))}", "", "| input | count |", "|---|---|"]
    lines += [f"| {name} | {number:,} |" for name, number in sorted(report.counts.items()) if number]
    if report.counts.get("quarantined"):
        lines += ["", f"Quarantined input is in `{QUARANTINE}`, with reasons."]
    return lines


def _recommended(found: Recommendation, settings: Settings) -> list[str]:
    limits = settings.limits
    assert limits is not None, "a recommendation requires limits"
    return [
        f"## {found.kind}: recommendation",
        "",
        f"With these quotas, at most {limits.throttled_share:.1%} of each client's responses have a throttle time, and "
        f"its p99 throttle time is at most {limits.delay_p99_ms:,} ms. This assumes "
        f"`quota.profile={settings.profiles[0]}` and {_in_words(settings.loops[0])}.",
        "",
        f"- Default: `{KEYS[found.kind]}={found.default}` ({rate(found.default)} on each broker), sufficient for "
        f"{len(found.others):,} of {len(found.others) + len(found.overrides):,} clients.",
        f"- Overrides: {len(found.overrides)}, in bold." if found.overrides else "- Overrides: none.",
        "",
        "| client | required quota | of average rate | p99 throttle time | throttled responses | broker | brokers |",
        "|---|---|---|---|---|---|---|",
        *(_row(need, "**") for need in found.overrides[:_MOST_SHOWN]),
        *(_row(need, "") for need in found.others[: _MOST_SHOWN - len(found.overrides)]),
    ]


def _row(need: Need, mark: str) -> str:
    name = _code(" ".join(each for each in (need.user, need.client_id) if each) or "(no id)")
    share = f"{need.quota / need.offered_rate:.2f}" if need.offered_rate else ""
    return (
        f"| {mark}{name}{mark} | {rate(need.quota)} | × {share} | {need.delay_p99_ms:,} ms "
        f"| {need.throttled_share:.1%} | {_code(need.broker)} | {need.brokers} |"
    )


def _effects(effects: Mapping[Candidate, Effect], limits: Limits | None) -> list[str]:
    beyond = " beyond limits |" if limits is not None else ""
    lines = [
        f"| profile | loop | quota | clients | throttled |{beyond} throttled responses | worst p99 throttle time "
        "| worst p99 added latency | lost throughput |",
        "|---" * (10 if beyond else 9) + "|",
    ]
    for candidate, effect in effects.items():
        spared = f" {len(effect.beyond_limits):,} |" if limits is not None else ""
        lines.append(
            f"| {candidate.profile} | {candidate.loop} | {rate(candidate.quota)} | {len(effect.clients):,} "
            f"| {len(effect.throttled_clients):,} |{spared} {effect.throttled / max(1, effect.answers):.2%} "
            f"| {effect.worst_delay_p99_ms:,} ms | {effect.worst_added_p99_ms:,} ms | {rate(effect.lost_rate)} |"
        )
    return lines


def rate(per_s: float) -> str:
    """Return the rate with a unit and three significant digits."""
    for unit, name in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        if per_s >= unit:
            return f"{per_s / unit:.3g} {name}"
    return f"{per_s:.0f} B/s"


def _in_words(loop: str) -> str:
    return "a closed loop (throttled clients pause)" if loop == "closed" else "an open loop (clients keep sending)"


def _code(text: str) -> str:
    """Return any text as inline code that fits in a table cell."""
    shown = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
    ticks = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    blank = " " * (len(ticks) > 1)
    escaped = shown.replace("|", "\\|")
    return f"{ticks}{blank}{escaped}{blank}{ticks}"
