"""The table of docs/journal.md, from the types of events: `python -m tests.docs.journal_events` writes it."""

import inspect
from pathlib import Path

from sluice.journal_events import KINDS, ClientEvent, Event, TopicPartition

PAGE = Path(__file__).parents[2] / "docs" / "journal.md"
BEGIN, END = "<!-- made from sluice/journal_events.py: begin -->", "<!-- end -->"


def rendered() -> str:
    """The table of each kind's own fields, after those of all events and of those of clients."""
    parts = [
        _section("All events", Event),
        _section("Events of clients", ClientEvent),
        *(_section(f"`{name}`", kind) for name, kind in KINDS.items()),
        _section("An item of `partitions`", TopicPartition),
    ]
    return "\n\n".join(parts)


def page_with_table(text: str) -> str:
    """The page with the table as it is to be."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{rendered()}\n\n{END}{after}"


def _section(title: str, kind: type[Event] | type[TopicPartition]) -> str:
    about, told = _docstring(kind)
    own = inspect.get_annotations(kind)
    lines = [f"### {title}", "", about]
    if told:
        lines += ["", "| field | type | what it is |", "|---|---|---|"]
        lines += [f"| `{name}` | {_type(own[name])} | {words} |" for name, words in told.items()]
    return "\n".join(lines)


def _type(annotation: object) -> str:
    text = annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else annotation
    return str(text).replace("sluice.journal_events.", "").replace(" | None", " or null")


def _docstring(kind: type) -> tuple[str, dict[str, str]]:
    """What a type is, and what its fields are."""
    first, *rest = inspect.cleandoc(kind.__doc__ or "").splitlines()
    told: dict[str, str] = {}
    name = ""
    for line in filter(None, rest):
        if line.startswith(" "):
            told[name] += f" {line.strip()}"
        else:
            name, _, words = line.partition(": ")
            told[name] = words
    return first, told


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
