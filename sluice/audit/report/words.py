"""Names and signs of verdicts and formats of numbers, shared by all forms of a report."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import NamedTuple

from sluice.audit.judge.findings import finding_name
from sluice.audit.judge.model.observation import SubjectInfo
from sluice.audit.judge.model.verdict import AuditResult, Finding, FindingKind, Fit, Sort, State, SubjectResult, Verdict
from sluice.text.error_text import printable

KIPS = {
    13: "Quotas and throttling",
    91: "Delivery timeout",
    144: "Exponential backoff for reconnects",
    572: "Task timeout in Kafka Streams",
    580: "Exponential backoff for retries",
}


class VerdictStyle(NamedTuple):
    """The presentation of a verdict. `key` is its CSS class and count; `short` fits a narrow cell."""

    key: str
    sign: str
    short: str
    words: str


PASS = VerdictStyle("pass", "✓", "pass", "passes")
VIOLATES = VerdictStyle("violates", "✕", "violates", "violates its own documentation")
DIFFERS = VerdictStyle("differs", "≠", "differs", "differs from the KIP")
PREDATES = VerdictStyle("predates", "≺", "predates", "predates the KIP")
INCONCLUSIVE = VerdictStyle("inconclusive", "?", "unclear", "inconclusive")
UNSEEN = VerdictStyle("unseen", "–", "unseen", "not observable from outside")

STYLES = (PASS, VIOLATES, DIFFERS, PREDATES, INCONCLUSIVE, UNSEEN)
DEVIATIONS = (VIOLATES, DIFFERS, PREDATES)
_OF_STATE = {State.PASS: PASS, State.DEVIATES: DIFFERS, State.INCONCLUSIVE: INCONCLUSIVE, State.NOT_OBSERVABLE: UNSEEN}
_OF_SORT = {Sort.VIOLATES_ITS_DOCUMENTATION: VIOLATES, Sort.DIFFERS_FROM_KIP: DIFFERS, Sort.PREDATES_KIP: PREDATES}

FINDINGS = {
    FindingKind.STORM: "Storm",
    FindingKind.STALL: "Stall",
    FindingKind.DUPLICATE: "Duplicate",
    FindingKind.LOST: "Lost record",
    FindingKind.WRAPPED: "Counter wrapped",
    FindingKind.FAILED: "Client failed",
}


def finding_words(finding: Finding) -> str:
    name = FINDINGS[finding.kind]
    return finding_name(finding).capitalize() if finding.kind is FindingKind.STORM else name


def style_of(verdict: Verdict) -> VerdictStyle:
    if verdict.state is State.DEVIATES and verdict.sort is not None:
        return _OF_SORT[verdict.sort]
    return _OF_STATE[verdict.state]


def counts(result: SubjectResult) -> dict[VerdictStyle, int]:
    styles = [style_of(verdict) for verdict in result.verdicts]
    return {style: styles.count(style) for style in STYLES if style in styles}


def name_of(subject: SubjectInfo) -> str:
    return f"{subject.name} {version_of(subject)}".rstrip()


def version_of(subject: SubjectInfo) -> str:
    """Return the version without the commit of a build from source."""
    return re.sub(r"\+g[0-9a-f]{7,}$", "", subject.version)


def moment(text: str) -> str:
    """Return an ISO 8601 time in UTC to the minute; any other text unchanged."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return text


def in_order(statements: Iterable[str]) -> list[str]:
    return sorted(set(statements), key=_place)


def statements_of(result: AuditResult) -> list[str]:
    return in_order(verdict.statement for subject in result.subjects for verdict in subject.verdicts)


def _place(statement: str) -> tuple[list[int], str]:
    return [int(number) for number in re.findall(r"\d+", statement)], statement


def kip_of(statement: str) -> str:
    return statement.partition("/")[0]


def title_of(kip: str) -> str:
    number = kip.removeprefix("KIP-")
    return KIPS.get(int(number), "") if number.isdecimal() else ""


def milliseconds(value: float) -> str:
    if not isfinite(value):
        return "no end"
    if abs(value) < 1000:
        return f"{value:.3g} ms" if abs(value) < 100 else f"{value:.0f} ms"
    if abs(value) < 120_000:
        return f"{value / 1000:.3g} s"
    minutes, seconds = divmod(round(value / 1000), 60)
    return f"{minutes} min {seconds} s"


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def measured(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return value
    return milliseconds(value) if name.endswith("_ms") else number(value)


def label(name: str) -> str:
    return name.removesuffix("_ms").replace("_", " ")


def fit_words(fit: Fit) -> str:
    parts = [f"{fit.model}: {milliseconds(fit.base_ms)}"]
    if fit.model == "exponential":
        parts.append(f"× {fit.multiplier:.3g} each time")
    elif fit.model == "linear":
        parts.append(f"+ {milliseconds(fit.multiplier)} each time")
    if fit.cap_ms is not None:
        parts.append(f"up to {milliseconds(fit.cap_ms)}")
    parts.append(f"± {100 * fit.jitter:.0f} % jitter" if fit.jitter else "no jitter")
    return f"{', '.join(parts)} (9 of 10 waits within {100 * fit.residual:.0f} %)"


def place_words(verdict: Verdict) -> str:
    runs = verdict.where or f"{verdict.runs} run{'s' * (verdict.runs != 1)}"
    return f"{verdict.probe}, {runs}" if verdict.probe else runs


def setting_words(settings: Mapping[str, float | str | bool]) -> list[tuple[str, str]]:
    return [(name, _property(value)) for name, value in sorted(settings.items())]


def _property(value: float | str | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.12g}"
    return printable(str(value))
