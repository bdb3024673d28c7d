"""docs/audit-matrix.md from a report of campaign `audit-matrix`: `python -m tools.docs.results.audit_matrix FOLDER`."""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import AuditResult, State, SubjectResult, Verdict
from sluice.audit.report import words
from sluice.audit.report.files import read_report
from sluice.audit.report.overview import overview
from sluice.audit.report.quotations import cited
from sluice.text.error_text import printable

_MOST_NUMBERS = 4
PAGE = Path(__file__).parents[3] / "docs" / "audit-matrix.md"
_ABOVE = """\
# What clients do when the broker fails

These are the results of [the audit](audit.md) for ten clients: which statements of the KIPs each follows, and where it
deviates. Use them to choose a client or its settings; [Read a verdict](audit.md#read-a-verdict) explains the signs.

Each deviation links to the place in the client's documentation or source that explains it, with the version that was
read: the measured version, or the nearest one with public source. Results apply to these versions, with these settings,
on this machine. If you maintain a client and find an error, please report it.

`java` and `java-4` are Apache Kafka's own client, `confluent-kafka` uses librdkafka, and `sluice` is [sluice's own
client](producer.md). `tools/campaign run audit-matrix` rewrites this page in half an hour. [Defects found in
clients](findings/index.md) describes the worst results.

"""


def page_of(folder: Path) -> str:
    """Return the page of a report."""
    return _ABOVE + matrix(read_report(folder), {each.id: each.text for each in STATEMENTS.values()})


def matrix(result: AuditResult, texts: Mapping[str, str]) -> str:
    """Write all except the evidence; `texts` are the statements by id."""
    lines = [
        f"Measured by sluice {result.sluice}, {_text(words.moment(result.began))}, on {_text(result.machine)}.",
        *_worst(result),
        "",
        *_counts(result),
        "",
        " · ".join(f"{style.sign} {style.words}" for style in words.STYLES) + ". An empty cell: not tested.",
    ]
    for kip, statements in groupby(words.statements_of(result), words.kip_of):
        lines += ["", f"## {kip}: {words.title_of(kip)}".rstrip(": "), "", *_matrix(result, list(statements), texts)]
    lines += _deviations(result)
    lines += _inconclusive(result)
    lines += _findings(result)
    lines += _recovery(result)
    return "\n".join([*lines, ""])


def _worst(result: AuditResult) -> Iterator[str]:
    """Yield the findings first: storms and losses harm more than any difference from a KIP."""
    for subject in result.subjects:
        faults = [fault for fault in overview(subject).faults if fault.style is None]
        if faults:
            yield from ("", f"{_name(subject)}:", "")
            yield from (f"- **{fault.name}**: {_text(fault.why)} ({_text(fault.place_words)})." for fault in faults)


def _counts(result: AuditResult) -> Iterator[str]:
    yield "| client | " + " | ".join(style.words for style in words.STYLES) + " | runs | time |"
    yield "|---" * (len(words.STYLES) + 3) + "|"
    for subject in result.subjects:
        found = words.counts(subject)
        cells = [str(found.get(style, "")) for style in words.STYLES]
        time = f"{words.milliseconds(subject.seconds * 1000)}{', virtual' if subject.virtual else ''}"
        yield f"| {_name(subject)} | {' | '.join(cells)} | {sum(subject.probes.values())} | {time} |"


def _matrix(result: AuditResult, statements: Sequence[str], texts: Mapping[str, str]) -> Iterator[str]:
    yield f"| statement | {' | '.join(_heads(result))} |"
    yield "|---|" + ":-:|" * len(result.subjects)
    found = [{verdict.statement: verdict for verdict in subject.verdicts} for subject in result.subjects]
    for statement in statements:
        cells = [words.style_of(each[statement]).sign if statement in each else "" for each in found]
        text = texts.get(statement, "")
        yield f"| **{_text(statement)}** {_text(text)} | {' | '.join(cells)} |"


def _deviations(result: AuditResult) -> Iterator[str]:
    cited_before: set[str] = set()
    for subject in result.subjects:
        found = {each.statement: each for each in subject.verdicts if each.state is State.DEVIATES}
        if found:
            yield from ("", f"## Deviations of {_name(subject)}", "")
        for statement in words.in_order(found):
            yield _deviation(found[statement]) + _citation(subject.subject.name, statement, cited_before)


def _inconclusive(result: AuditResult) -> Iterator[str]:
    lines = [
        f"- **{_text(statement)}** of {_name(subject)}: {_text(found[statement].why)}."
        for subject in result.subjects
        for found in [{each.statement: each for each in subject.verdicts if each.state is State.INCONCLUSIVE}]
        for statement in words.in_order(found)
    ]
    if lines:
        yield from ("", "## Inconclusive", "", *lines)


def _deviation(verdict: Verdict) -> str:
    style = words.style_of(verdict)
    line = f"- {style.sign} **{_text(verdict.statement)}** {style.words}: {_text(verdict.why)}"
    line += f" [{_text(words.place_words(verdict))}]".replace("[", "\\[").replace("]", "\\]") if verdict.probe else ""
    numbers = _numbers(verdict)
    line += f" ({_text(numbers)})" if numbers else ""
    return line + (f", observed under: {_text(verdict.path)}." if verdict.path else ".")


def _numbers(verdict: Verdict) -> str:
    shown = [(key, value) for key, value in verdict.measured.items() if value]
    shown.sort(key=lambda pair: not pair[0].endswith("_ms"))
    return ", ".join(
        f"{key.removesuffix('_ms').replace('_', ' ')} {words.measured(key, value)}"
        for key, value in shown[:_MOST_NUMBERS]
    )


def _citation(name: str, what: str, cited_before: set[str]) -> str:
    citation = cited(name, what)
    if citation is None:
        return ""
    says = "as above" if citation.says in cited_before else _text(citation.says)
    cited_before.add(citation.says)
    return f" {_text(citation.version)}: [{says}]({citation.source})"


def _findings(result: AuditResult) -> Iterator[str]:
    cited_before: set[str] = set()
    lines = [
        f"- **{words.finding_words(finding)}** of {_name(subject)} in {_text(finding.probe)}: {_text(finding.why)}."
        + _citation(subject.subject.name, finding.kind, cited_before)
        for subject in result.subjects
        for finding in subject.findings
    ]
    if lines:
        yield from ("", "## Findings", "", *lines)


def _recovery(result: AuditResult) -> Iterator[str]:
    probes = sorted({probe for subject in result.subjects for probe in subject.recovery_ms})
    if not probes:
        return
    yield from ("", "## Recovery", "", "From the end of the fault to the next success, median of the runs.", "")
    yield f"| probe | {' | '.join(_heads(result))} |"
    yield "|---|" + "--:|" * len(result.subjects)
    for probe in probes:
        times = [subject.recovery_ms.get(probe) for subject in result.subjects]
        cells = ["" if time is None else words.milliseconds(time) for time in times]
        yield f"| {_text(probe)} | {' | '.join(cells)} |"


def _heads(result: AuditResult) -> list[str]:
    names = Counter(subject.subject.name for subject in result.subjects)
    return [
        _name(subject) if names[subject.subject.name] > 1 else _text(subject.subject.name)
        for subject in result.subjects
    ]


def _name(subject: SubjectResult) -> str:
    return _text(words.name_of(subject.subject))


def _text(text: str) -> str:
    """Escape markup: clients choose their names."""
    return re.sub(r"([\\`*_\[\]<>|#~&$])", r"\\\1", printable(text))


if __name__ == "__main__":
    PAGE.write_text(page_of(Path(sys.argv[1])), encoding="utf-8")
