"""One HTML page for people, whole in itself: it loads nothing, works from a disk, and runs one short script of its own.

The script only opens what links lead to; without it the same links show the same evidence. A policy in the page keeps
any other script and all of the network out, whatever a client chose to be called.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from sluice.audit.judge.model.verdict import AuditResult, SubjectResult, Verdict

from .evidence import badge, finding_dialog, verdict_dialog
from .markup import Markup, element
from .words import (
    DEVIATIONS,
    FINDINGS,
    STYLES,
    counts,
    kip_of,
    milliseconds,
    moment,
    name_of,
    statements_of,
    style_of,
    title_of,
    version_of,
)

_HERE = Path(__file__).parent
_COLUMN_PERCENT = 16  # of the width, that a client has at most; the statements have the rest
_MOST_COLUMNS = 6  # that a phone has room for without scrolling


def page(result: AuditResult, texts: Mapping[str, str]) -> str:
    """The page; `texts` are the statements, by id."""
    title = _title(result)
    statements = statements_of(result)
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        element("title", title),
        element("style", Markup((_HERE / "page.css").read_text(encoding="utf-8"))),
    )
    main = element(
        "main",
        element("header", element("h1", title), element("p", _about(result), class_="note"), class_="top"),
        element("section", *(_card(number, each) for number, each in enumerate(result.subjects)), class_="cards"),
        _legend(),
        *_matrices(result, statements, texts),
        _findings(result),
        _recovery(result),
        _runs(result),
    )
    body = element("body", main, *_dialogs(result, texts), element("script", Markup(script)))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _policy(script: str) -> str:
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"


def _title(result: AuditResult) -> str:
    if len(result.subjects) == 1:
        return f"Audit of {name_of(result.subjects[0].subject)}"
    return f"Audit of {len(result.subjects)} Kafka clients"


def _about(result: AuditResult) -> str:
    measured = f"measured by sluice {result.sluice}. {moment(result.began)}. {result.machine}."
    return f"What they do when a broker fails, {measured}"


# -- the top -----------------------------------------------------------------------------------------------------------


def _card(number: int, result: SubjectResult) -> Markup:
    by_style = counts(result)
    bar = [element("span", class_=style.key, style=f"flex-grow:{count}") for style, count in by_style.items()]
    lines = [
        element(
            "li",
            element("span", style.sign, class_=f"chip {style.key}", aria_hidden="true"),
            element("b", str(count)),
            style.short,
        )
        for style, count in by_style.items()
    ]
    if result.findings:
        link = element("a", f"{len(result.findings)} finding{'s' * (len(result.findings) > 1)}", href=f"#f{number}")
        lines.append(element("li", element("span", "!", class_="chip violates", aria_hidden="true"), link))
    subject = result.subject
    heading = element("h2", subject.name, " ", element("span", version_of(subject), class_="version"))
    kind = f"{'virtual' if result.virtual else 'real'} time, {sum(result.probes.values())} runs"
    return element(
        "article",
        heading,
        element("p", kind, class_="note"),
        element("div", *bar, class_="bar", aria_hidden="true"),
        element("ul", *lines),
        class_="card",
    )


def _legend() -> Markup:
    words = {
        "pass": "what was measured is what the statement says",
        "violates": "it does not do what its own documentation or configuration says",
        "differs": "it never claimed the KIP, and does something else",
        "predates": "this version is older than the KIP",
        "inconclusive": "the runs do not decide",
        "unseen": "nobody can tell from the broker's side",
    }
    rows = [part for style in STYLES for part in (element("dt", badge(style)), element("dd", words[style.key]))]
    only = element("label", element("input", type="checkbox", id="only"), " Only rows with deviations")
    hint = "Each cell opens its evidence. Arrow keys move between cells, Enter opens one, Esc closes it."
    details = element("details", element("summary", "What the signs mean"), element("dl", *rows))
    return element("section", element("p", hint, class_="note"), only, details, class_="controls")


# -- the matrix --------------------------------------------------------------------------------------------------------


def _matrices(result: AuditResult, statements: Sequence[str], texts: Mapping[str, str]) -> Iterable[Markup]:
    """A table for each KIP."""
    found = [{verdict.statement: verdict for verdict in subject.verdicts} for subject in result.subjects]
    columns = len(result.subjects)
    for kip, of_kip in groupby(statements, kip_of):
        rows = [_row(statement, found, texts.get(statement, "")) for statement in of_kip]
        names = [
            element(
                "th", each.subject.name, element("small", version_of(each.subject)), scope="col", role="columnheader"
            )
            for each in result.subjects
        ]
        corner = element("th", "statement", scope="col", class_="corner", role="columnheader")
        table = element(
            "table",
            element("thead", element("tr", corner, *names, role="row"), role="rowgroup"),
            element("tbody", *rows, role="rowgroup"),
            class_="matrix",
            role="table",
            aria_labelledby=f"h-{kip}",
            style=f"--columns:{columns};--first:{max(46, 100 - _COLUMN_PERCENT * columns)}%",
        )
        heading = element("h2", element("span", kip), " ", element("small", title_of(kip)), id=f"h-{kip}")
        wide = " wide" if columns > _MOST_COLUMNS else ""
        yield element("section", heading, element("div", table, class_=f"scroll{wide}"), class_="kip")


def _row(statement: str, found: Sequence[Mapping[str, Verdict]], text: str) -> Markup:
    cells = [_cell(number, of_subject.get(statement)) for number, of_subject in enumerate(found)]
    deviates = any(statement in of_subject and style_of(of_subject[statement]) in DEVIATIONS for of_subject in found)
    name = element("th", element("b", statement), " ", text, scope="row", role="rowheader")
    return element("tr", name, *cells, role="row", class_="deviates" if deviates else None)


def _cell(number: int, verdict: Verdict | None) -> Markup:
    if verdict is None:
        return element("td", element("span", "not tried", class_="cell none"), role="cell")
    style = style_of(verdict)
    link = element(
        "a",
        element("span", style.sign, class_="sign", aria_hidden="true"),
        element("span", style.short, class_="word"),
        href=f"#{_identity(number, verdict.statement)}",
        class_=f"cell {style.key}",
        title=verdict.why,
    )
    return element("td", link, role="cell")


def _identity(number: int, statement: str) -> str:
    return f"s{number}-{statement.replace('/', '-')}"


# -- below it ----------------------------------------------------------------------------------------------------------


def _findings(result: AuditResult) -> Markup:
    parts = []
    for number, subject in enumerate(result.subjects):
        if subject.findings:
            items = [
                element(
                    "li",
                    element("a", FINDINGS[finding.kind], href=f"#f{number}-{at}", class_="badge finding"),
                    " ",
                    finding.why,
                    element("span", f" in {finding.probe}", class_="note"),
                )
                for at, finding in enumerate(subject.findings)
            ]
            parts.append(element("h3", name_of(subject.subject), id=f"f{number}"))
            parts.append(element("ul", *items, class_="findings"))
    if not parts:
        parts = [element("p", "No storm, no stall, no duplicate, no lost record, no counter that wrapped.")]
    return element("section", element("h2", "Findings"), *parts)


def _recovery(result: AuditResult) -> Markup:
    probes = sorted({probe for subject in result.subjects for probe in subject.recovery_ms})
    if not probes:
        return Markup()
    names = [element("th", subject.subject.name, scope="col") for subject in result.subjects]
    rows = [
        element("tr", element("th", probe, scope="row"), *(_time(subject, probe) for subject in result.subjects))
        for probe in probes
    ]
    table = element("table", element("thead", element("tr", element("td"), *names)), element("tbody", *rows))
    about = "From the end of the fault to the next success, median of the runs."
    scrolled = element("div", table, class_="scroll wide recovery")
    return element("section", element("h2", "Recovery"), element("p", about, class_="note"), scrolled)


def _time(subject: SubjectResult, probe: str) -> Markup:
    time_ms = subject.recovery_ms.get(probe)
    return element("td", "" if time_ms is None else milliseconds(time_ms))


def _runs(result: AuditResult) -> Markup:
    items = []
    for subject in result.subjects:
        probes = [element("li", f"{probe} × {runs}", class_="note") for probe, runs in sorted(subject.probes.items())]
        took = f"{len(subject.probes)} probes in {milliseconds(subject.seconds * 1000)}, and how often each ran:"
        problems = [element("li", problem) for problem in subject.problems]
        told = [element("p", "Runs that did not come about:"), element("ul", *problems)] if problems else []
        items.append(element("h3", name_of(subject.subject)))
        items += [element("p", took), element("ul", *probes, class_="run"), *told]
    return element("section", element("h2", "Runs"), *items, class_="runs")


def _dialogs(result: AuditResult, texts: Mapping[str, str]) -> Iterable[Markup]:
    for number, subject in enumerate(result.subjects):
        for verdict in subject.verdicts:
            identity = _identity(number, verdict.statement)
            yield verdict_dialog(identity, subject, verdict, texts.get(verdict.statement, ""))
        for at, finding in enumerate(subject.findings):
            yield finding_dialog(f"f{number}-{at}", subject, finding)
