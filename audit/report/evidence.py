"""What opens behind a cell of the matrix, and behind a finding: plots, the model, the numbers, how they came about."""

from collections.abc import Mapping, Sequence

from sluice.audit.judge.model.observation import SubjectInfo
from sluice.audit.judge.model.verdict import Finding, Fit, Series, State, SubjectResult, Verdict

from .citations import cited
from .markup import Markup, element
from .plots import MOST_SERIES, attempts_plot, waits_plot
from .words import (
    FINDINGS,
    VerdictStyle,
    fit_words,
    in_order,
    kip_of,
    label,
    measured,
    milliseconds,
    name_of,
    setting_words,
    style_of,
)

_MOST_WAITS = 200  # of a sequence, as numbers: a page is no place for more, and report.json has them


def verdict_dialog(identity: str, result: SubjectResult, verdict: Verdict, text: str) -> Markup:
    """All that there is to one verdict."""
    facts = [("Seen under", verdict.path)] if verdict.path else []
    facts += [("Looked at", _looked_at(result, verdict))]
    if verdict.state is State.DEVIATES:
        facts += _citation(result.subject.name, verdict.statement)
    body = [
        element("p", element("b", verdict.statement), " ", text, class_="statement"),
        element("p", verdict.why, class_="why"),
        _plots(
            verdict.series,
            verdict.fit,
            f"allowed by {kip_of(verdict.statement)}",
            [_model(verdict.fit), _numbers(verdict.measured, verdict.expected)],
            _facts(facts),
        ),
        _raw(verdict.series),
        _subject(result.subject),
    ]
    return _dialog(identity, [badge(style_of(verdict)), " ", name_of(result.subject)], body)


def _citation(name: str, what: str) -> list[tuple[str, Markup]]:
    """Where that stands; nothing where nobody has looked."""
    citation = cited(name, what)
    if citation is None:
        return []
    link = element("a", citation.says, href=citation.source, rel="noreferrer")
    return [(f"{citation.version} says so", link)]


def finding_dialog(identity: str, result: SubjectResult, finding: Finding) -> Markup:
    """All that there is to one finding."""
    facts = [("Seen in", finding.probe), *_citation(result.subject.name, finding.kind)]
    body = [
        element("p", finding.why, class_="why"),
        _plots(finding.series, None, "allowed", [_numbers(finding.measured, {})], _facts(facts)),
        _raw(finding.series),
        _subject(result.subject),
    ]
    heading = [element("span", FINDINGS[finding.kind], class_="badge finding"), " ", name_of(result.subject)]
    return _dialog(identity, heading, body)


def badge(style: VerdictStyle) -> Markup:
    """A verdict in its colour, with its sign and all of its words."""
    return element(
        "span", element("span", style.sign, aria_hidden="true"), " ", style.words, class_=f"badge {style.key}"
    )


def _dialog(identity: str, heading: Sequence[str], body: Sequence[Markup]) -> Markup:
    close = element("a", "Close", href="#", class_="close", aria_label="Close the evidence")
    head = element("header", element("h2", *heading, id=f"{identity}-h"), close)
    return element("dialog", head, element("div", *body, class_="body"), id=identity, aria_labelledby=f"{identity}-h")


def _looked_at(result: SubjectResult, verdict: Verdict) -> str:
    runs = f"{verdict.runs} run{'s' * (verdict.runs != 1)} in {'virtual' if result.virtual else 'real'} time"
    if verdict.state is State.INCONCLUSIVE:
        needed = verdict.runs_needed
        return f"{runs}; " + ("no number of runs would decide" if needed is None else f"{needed} more would decide")
    return runs


def _plots(series: Sequence[Series], fit: Fit | None, allowed: str, beside: Sequence[Markup], facts: Markup) -> Markup:
    """The plots, in two columns where there is room, and what belongs beside and below them."""
    if not any(each.at_ms for each in series):
        return element("div", *beside, facts)
    has_band = any(each.low_ms for each in series)
    attempts = [("dots succeeded", "succeeded"), ("dots failed", "failed"), ("dots open", "no answer")]
    attempts += [("band", f"{allowed} for the next")] if has_band else []
    over_time = _figure("Attempts over time, a row for each sequence", attempts_plot(series), attempts)
    if len(series) > MOST_SERIES:
        note = f"The first {MOST_SERIES} of {len(series)} sequences are drawn; all are in report.json."
        beside = [element("p", note, class_="note"), *beside]
    if not any(each.waited_ms for each in series):
        return element("div", over_time, element("div", *beside, facts), class_="figures")
    waits = [("dots wait", "a wait"), *([("band", allowed)] if has_band else [])]
    waits += [("fit", "the model that fits")] if fit is not None else []
    of_waits = _figure("What was waited before each retry", waits_plot(series, fit), waits)
    return element("div", element("div", of_waits, facts), element("div", over_time, *beside), class_="figures")


def _figure(caption: str, plot: Markup, legend: Sequence[tuple[str, str]]) -> Markup:
    keys = [element("li", _swatch(kind), words) for kind, words in legend]
    return element("figure", element("figcaption", caption), plot, element("ul", *keys, class_="legend"))


def _swatch(kind: str) -> Markup:
    path = {"band": "M1 1H17V11H1z", "fit": "M0 6H18"}.get(kind, "M9 6h0")
    return element(
        "svg", element("path", d=path, class_=kind), viewBox="0 0 18 12", class_="swatch", aria_hidden="true"
    )


def _model(fit: Fit | None) -> Markup:
    if fit is None:
        return Markup()
    sure = f"explains {100 * fit.confidence:.0f} % of resampled waits best, of {fit.waits} waits"
    return element("p", element("b", "Fitted model "), fit_words(fit), element("span", f" ({sure})", class_="note"))


def _numbers(found: Mapping[str, float | str], expected: Mapping[str, str]) -> Markup:
    names = [*found, *(name for name in expected if name not in found)]
    if not names:
        return Markup()
    rows = [
        element(
            "tr",
            element("th", label(name), scope="row"),
            element("td", measured(name, found[name]) if name in found else ""),
            *([element("td", expected.get(name, ""))] if expected else []),
        )
        for name in names
    ]
    heads = ["", "measured", *(["expected"] if expected else [])]
    return element("table", element("thead", _row_of(heads)), element("tbody", *rows), class_="numbers")


def _row_of(heads: Sequence[str]) -> Markup:
    return element("tr", *(element("th", head, scope="col") if head else element("td") for head in heads))


def _facts(facts: Sequence[tuple[str, str]]) -> Markup:
    return element("dl", *(part for name, words in facts for part in (element("dt", name), element("dd", words))))


def _raw(series: Sequence[Series]) -> Markup:
    if not series:
        return Markup()
    items = [_raw_item(number_, each) for number_, each in enumerate(series[:MOST_SERIES], 1)]
    return element("details", element("summary", "Raw numbers"), element("ol", *items), class_="raw")


def _raw_item(number_: int, series: Series) -> Markup:
    what = f"{series.kind} {series.key}, run {series.repetition + 1}: {_outcomes(series)}"
    lines = [("waited", series.waited_ms)]
    if series.low_ms:
        lines += [("at least", series.low_ms), ("at most", series.high_ms)]
    rows = [element("tr", element("th", name, scope="row"), element("td", _listed(values))) for name, values in lines]
    table = element("table", *rows) if series.waited_ms else Markup()
    return element("li", element("p", what), table, value=number_)


def _outcomes(series: Series) -> str:
    seconds = milliseconds(series.at_ms[-1]) if series.at_ms else "0 s"
    kinds = [f"{series.outcomes.count(kind)} {kind}" for kind in dict.fromkeys(series.outcomes)]
    return f"{len(series.at_ms)} attempts in {seconds}" + (f" ({', '.join(kinds)})" if kinds else "")


def _listed(values: Sequence[float]) -> str:
    shown = ", ".join(f"{round(value, 1):.12g}" for value in values[:_MOST_WAITS])
    more = len(values) - _MOST_WAITS
    return f"{shown} ms" + (f", and {more} more in report.json" if more > 0 else "")


def _subject(subject: SubjectInfo) -> Markup:
    rows = [
        element("tr", element("th", name, scope="row"), element("td", value))
        for name, value in setting_words(subject.settings)
    ]
    about = [f"{name_of(subject)}, as a {subject.role}."]
    if subject.kips:
        about.append(f"Its documentation claims {', '.join(sorted(subject.kips))}.")
    if subject.before:
        about.append(f"It is older than, or says it does without, {', '.join(sorted(subject.before))}.")
    if subject.otherwise:
        about.append(f"It says itself that it does otherwise in {', '.join(in_order(subject.otherwise))}.")
    settings = element("table", *rows) if rows else element("p", "No setting is known.", class_="note")
    return element("details", element("summary", "Version and settings"), element("p", " ".join(about)), settings)
