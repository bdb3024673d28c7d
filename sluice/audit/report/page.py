"""The HTML page for people. It is self-contained: it loads nothing, and works from a file.

Because clients choose names, keys and error texts, a Content-Security-Policy blocks all network access and all scripts
but the page's own, the templates escape each value, and `_printable` replaces control characters.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sluice.audit.judge.model.verdict import AuditResult
from sluice.text.error_text import printable

from . import evidence, overview, words
from .evidence import Evidence, finding_evidence, verdict_evidence
from .plots import MOST_SERIES
from .words import DEVIATIONS, STYLES, kip_of, name_of, statements_of

_TEMPLATES = Path(__file__).with_name("templates")
_FILTERS = (
    *(words.fit_words, words.in_order, words.label, words.milliseconds, words.moment, words.name_of),
    *(words.place_words, overview.backoff_words, words.setting_words, words.style_of, words.title_of, words.version_of),
    *(evidence.listed, evidence.sequence_words),
)
_MEANINGS = {
    "pass": "the measurement agrees with the statement",
    "violates": "it contradicts its own documentation or configuration",
    "differs": "it does not claim to implement the KIP, and behaves differently",
    "predates": "this version is older than the KIP",
    "inconclusive": "the runs do not decide",
    "unseen": "a broker cannot observe it",
}


def page(result: AuditResult, texts: Mapping[str, str]) -> str:
    """Return the page; `texts` are the statements by id."""
    statements = statements_of(result)
    found = [{verdict.statement: verdict for verdict in subject.verdicts} for subject in result.subjects]
    script = (_TEMPLATES / "page.js").read_text(encoding="utf-8")
    return (
        _environment()
        .get_template("page.html")
        .render(
            css=(_TEMPLATES / "page.css").read_text(encoding="utf-8"),
            script=script,
            result=result,
            texts=texts,
            title=_title(result),
            policy=_policy(script),
            kips=[(kip, list(of_kip)) for kip, of_kip in groupby(statements, kip_of)],
            verdicts={
                statement: {number: each[statement] for number, each in enumerate(found) if statement in each}
                for statement in statements
            },
            recovered_probes=sorted({probe for subject in result.subjects for probe in subject.recovery_ms}),
            dialogs=_dialogs(result, texts),
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        finalize=_printable,
        keep_trailing_newline=True,
        loader=FileSystemLoader(_TEMPLATES),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {function.__name__: function for function in _FILTERS}
    environment.globals |= {
        "column_percent": 16,  # the largest width of a client's column; the statements get the rest
        "most_columns": 6,  # that fit a phone without scrolling
        "counts": words.counts,
        "deviations": DEVIATIONS,
        "meanings": _MEANINGS,
        "measured": words.measured,
        "most_series": MOST_SERIES,
        "overview": overview.overview,
        "styles": STYLES,
        "verdict_id": _verdict_id,
    }
    return environment


def _printable(value: object) -> object:
    if hasattr(value, "__html__"):
        return value
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


def _policy(script: str) -> str:
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"


def _title(result: AuditResult) -> str:
    if len(result.subjects) == 1:
        return f"Audit of {name_of(result.subjects[0].subject)}"
    return f"Audit of {len(result.subjects)} Kafka clients"


def _verdict_id(number: int, statement: str) -> str:
    return f"s{number}-{statement.replace('/', '-')}"


def _dialogs(result: AuditResult, texts: Mapping[str, str]) -> Iterator[Evidence]:
    for number, subject in enumerate(result.subjects):
        for verdict in subject.verdicts:
            identity = _verdict_id(number, verdict.statement)
            yield verdict_evidence(identity, subject, verdict, texts.get(verdict.statement, ""))
        for at, finding in enumerate(subject.findings):
            yield finding_evidence(f"f{number}-{at}", subject, finding)
