"""The matrix as Markdown: for a page of documentation, and for the summary of a CI job (report.md)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from sluice.audit.verdict import AuditResult, State, SubjectResult, Verdict
from sluice.printable import printable

from .citations import cited
from .words import (
    FINDINGS,
    LOOKS,
    counts,
    in_order,
    kip_of,
    look_of,
    measured,
    milliseconds,
    name_of,
    statements_of,
    title_of,
)

_MOST_NUMBERS = 4  # of a deviation, in its line


def markdown(result: AuditResult, texts: Mapping[str, str]) -> str:
    """All of a report but the evidence; `texts` are the statements, by id."""
    lines = [
        f"Measured by sluice {result.sluice}, {_text(result.began)}, on {_text(result.machine)}.",
        "",
        *_counts(result),
        "",
        " · ".join(f"{look.sign} {look.words}" for look in LOOKS) + ". An empty cell: not tried.",
    ]
    for kip, statements in groupby(statements_of(result), kip_of):
        lines += ["", f"## {kip}: {title_of(kip)}".rstrip(": "), "", *_matrix(result, list(statements), texts)]
    lines += _deviations(result)
    lines += _findings(result)
    lines += _recovery(result)
    return "\n".join([*lines, ""])


def _counts(result: AuditResult) -> Iterator[str]:
    yield "| client | " + " | ".join(look.words for look in LOOKS) + " | runs | time |"
    yield "|---" * (len(LOOKS) + 3) + "|"
    for subject in result.subjects:
        found = counts(subject)
        cells = [str(found.get(look, "")) for look in LOOKS]
        time = f"{milliseconds(subject.seconds * 1000)}{', virtual' if subject.virtual else ''}"
        yield f"| {_name(subject)} | {' | '.join(cells)} | {sum(subject.probes.values())} | {time} |"


def _matrix(result: AuditResult, statements: Sequence[str], texts: Mapping[str, str]) -> Iterator[str]:
    yield "| statement | " + " | ".join(map(_name, result.subjects)) + " |"
    yield "|---|" + ":-:|" * len(result.subjects)
    found = [{verdict.statement: verdict for verdict in subject.verdicts} for subject in result.subjects]
    for statement in statements:
        cells = [look_of(each[statement]).sign if statement in each else "" for each in found]
        text = texts.get(statement, "")
        yield f"| **{_text(statement)}** {_text(text)} | {' | '.join(cells)} |"


def _deviations(result: AuditResult) -> Iterator[str]:
    for subject in result.subjects:
        found = {each.statement: each for each in subject.verdicts if each.state is State.DEVIATES}
        if found:
            yield from ("", f"## Deviations of {_name(subject)}", "")
        for statement in in_order(found):
            yield _deviation(subject.subject.name, found[statement])


def _deviation(name: str, verdict: Verdict) -> str:
    look = look_of(verdict)
    numbers = ", ".join(
        f"{key.removesuffix('_ms').replace('_', ' ')} {measured(key, value)}"
        for key, value in list(verdict.measured.items())[:_MOST_NUMBERS]
    )
    line = f"- {look.sign} **{_text(verdict.statement)}** {look.words}: {_text(verdict.why)}"
    line += f" ({_text(numbers)})" if numbers else ""
    line += f", seen under {_text(verdict.path)}" if verdict.path else ""
    return f"{line}.{_citation(name, verdict.statement)}"


def _citation(name: str, what: str) -> str:
    """Where that stands, and in what; "" where nobody has looked."""
    citation = cited(name, what)
    return "" if citation is None else f" {_text(citation.version)}: [{_text(citation.says)}]({citation.source})"


def _findings(result: AuditResult) -> Iterator[str]:
    lines = [
        f"- **{FINDINGS[finding.kind]}** of {_name(subject)} in {_text(finding.probe)}: {_text(finding.why)}."
        + _citation(subject.subject.name, finding.kind)
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
    yield "| probe | " + " | ".join(map(_name, result.subjects)) + " |"
    yield "|---|" + "--:|" * len(result.subjects)
    for probe in probes:
        times = [subject.recovery_ms.get(probe) for subject in result.subjects]
        cells = ["" if time is None else milliseconds(time) for time in times]
        yield f"| {_text(probe)} | {' | '.join(cells)} |"


def _name(subject: SubjectResult) -> str:
    return _text(name_of(subject.subject))


def _text(text: str) -> str:
    """As text, whatever a client is called: nothing in it is markup."""
    return re.sub(r"([\\`*_\[\]<>|#~&$])", r"\\\1", printable(text))
