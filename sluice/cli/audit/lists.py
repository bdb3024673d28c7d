"""The output of `sluice audit list`."""

from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.probes import PROBES
from sluice.audit.report.words import in_order
from sluice.audit.subjects import SUBJECTS
from sluice.cli.text_table import table
from sluice.text.json_text import json_text

_Rows = list[dict[str, str]]


def as_text(what: str) -> str:
    parts = [_table(_LISTS[name]()) for name in _names(what)]
    return "\n\n".join(parts)


def as_json(what: str) -> str:
    lists = {name: _LISTS[name]() for name in _names(what)}
    return json_text(lists)


def _names(what: str) -> list[str]:
    return list(_LISTS) if what == "all" else [what]


def _table(rows: _Rows) -> str:
    head = [name.upper() for name in rows[0]]
    return "\n".join(table(head, [list(row.values()) for row in rows]))


def _subjects() -> _Rows:
    return [
        {
            "subject": each.name,
            "version": each.version() or "-",
            "time": "virtual" if each.virtual else "real",
            "note": each.missing() or "",
        }
        for each in SUBJECTS.values()
    ]


def _probes() -> _Rows:
    return [
        {
            "probe": each.name,
            "role": each.role,
            "for": " ".join(in_order(each.statements)) or "-",
            "what": each.what,
        }
        for each in PROBES.values()
    ]


def _statements() -> _Rows:
    return [
        {
            "statement": each.id,
            "seen": "no" if each.unobservable else "yes",
            "text": f"{each.text} Not observable: {each.unobservable}" if each.unobservable else each.text,
        }
        for each in (STATEMENTS[statement] for statement in in_order(STATEMENTS))
    ]


_LISTS = {"subjects": _subjects, "probes": _probes, "statements": _statements}
