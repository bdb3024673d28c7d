"""Markdown tables, and their places in pages."""

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; `|` and line breaks within cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def put(marks: tuple[str, str], content: str, text: str) -> str:
    """Return the text of a page with this content between two marks."""
    before, rest = text.split(marks[0])
    _, after = rest.split(marks[1], 1)
    return f"{before}{marks[0]}\n\n{content}\n\n{marks[1]}{after}"


def code(text: object) -> str:
    """Return the text as code; "" stays empty."""
    return f"`{text}`" if text not in ("", None) else ""
