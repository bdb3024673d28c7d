"""Markdown tables, and their places in pages."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; `|` and line breaks within cells are escaped."""
    return "".join(line(map(_cell, cells)) for cells in [head, ["---"] * len(head), *rows])


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def put(marks: tuple[str, str], content: str, text: str) -> str:
    """Return the text of a page with this content between two marks."""
    before, rest = text.split(marks[0])
    _, after = rest.split(marks[1], 1)
    return f"{before}{marks[0]}\n\n{content.rstrip()}\n\n{marks[1]}{after}"


def code(text: object) -> str:
    """Return the text as code; "" stays empty."""
    return f"`{text}`" if text not in ("", None) else ""
