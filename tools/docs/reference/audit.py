"""The tables of docs/audit.md from probes and statements."""

from pathlib import Path

from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.probes import PROBES
from sluice.audit.report.quotations import kip_texts
from sluice.audit.report.words import in_order
from tools.docs.tables import code, put, table

PAGE = Path(__file__).parents[3] / "docs" / "audit.md"
_PROBES = ("<!-- probes, generated from sluice/audit/probes: begin -->", "<!-- probes: end -->")
_STATEMENTS = (
    "<!-- statements, generated from sluice/audit/report/kip_texts.toml: begin -->",
    "<!-- statements: end -->",
)
_UNOBSERVABLE = (
    "<!-- unobservable statements, generated from sluice/audit/judge/model/statements.py: begin -->",
    "<!-- unobservable statements: end -->",
)


def page_with_tables(text: str) -> str:
    """Return the page with current tables."""
    return put(_STATEMENTS, _statements(), put(_UNOBSERVABLE, _unobservable(), put(_PROBES, _probes(), text)))


def _probes() -> str:
    rows = [
        [code(probe.name), probe.role, probe.what, " ".join(in_order(probe.statements))] for probe in PROBES.values()
    ]
    return table(["probe", "role", "injected failure", "statements"], rows)


def _statements() -> str:
    rows = [
        [statement, STATEMENTS[statement].text, kip_texts()[statement].in_words.replace("*", r"\*")]
        for statement in in_order(kip_texts())
    ]
    return table(["statement", "text", "the KIP, and Kafka's client"], rows)


def _unobservable() -> str:
    found = [STATEMENTS[statement] for statement in in_order(STATEMENTS) if STATEMENTS[statement].unobservable]
    return table(["statement", "text", "reason"], [[one.id, one.text, one.unobservable] for one in found])
