"""The tables of docs/journal.md from the event types."""

import inspect
from pathlib import Path

import msgspec

from sluice.broker.journal.returned import RETURNED
from sluice.broker.journal.sent import SENT
from sluice.journal_events import KINDS, ClientEvent, Event, FetchedRecords, ProducedBatch, TopicPartition
from sluice.protocol.apis import API_KEYS
from tools.docs.tables import code, put, table

PAGE = Path(__file__).parents[3] / "docs" / "journal.md"
_MARKS = ("<!-- generated from sluice/journal_events.py: begin -->", "<!-- end -->")


def page_with_table(text: str) -> str:
    """Return the page with current tables of the fields of all events, of events of clients, and of each kind."""
    parts = [
        _section("All events", Event),
        _section("Events of clients", ClientEvent),
        *(_section(f"`{name}`", kind) for name, kind in KINDS.items()),
        _section("Items of `partitions`", TopicPartition),
        _section("`batch` of a partition", ProducedBatch),
        _section("`fetched` of a partition", FetchedRecords),
        _fields(),
    ]
    return put(_MARKS, "\n\n".join(map(str.strip, parts)), text)


def _fields() -> str:
    """Return the fields in `sent` and `returned` by API."""
    rows = []
    for key in sorted({*SENT, *RETURNED}):
        names = [fields[key].names if key in fields else () for fields in (SENT, RETURNED)]
        rows.append([API_KEYS[key].name, *(", ".join(map(code, each)) for each in names)])
    return "### `sent` and `returned` of a request\n\n" + table(["API", "`sent`", "`returned`"], rows)


def _section(title: str, kind: type[msgspec.Struct]) -> str:
    about, descriptions = _docstring(kind)
    own = inspect.get_annotations(kind)
    rows = [[code(name), _type(own[name]), description] for name, description in descriptions.items()]
    return f"### {title}\n\n{about}\n\n{table(['field', 'type', 'description'], rows) if rows else ''}"


def _type(annotation: object) -> str:
    text = annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else annotation
    return str(text).replace("sluice.journal_events.", "").replace(" | None", " or null")


def _docstring(kind: type) -> tuple[str, dict[str, str]]:
    """Return the summary of a type, and the descriptions of its fields."""
    first, *rest = inspect.cleandoc(kind.__doc__ or "").splitlines()
    fields: dict[str, str] = {}
    name = ""
    for line in filter(None, rest):
        if line.startswith(" "):
            fields[name] += f" {line.strip()}"
        else:
            name, _, description = line.partition(": ")
            fields[name] = description
    return first, fields
