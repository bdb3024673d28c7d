"""A table as plain text, for terminals and for files."""

from collections.abc import Sequence

from sluice.printable import printable


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Its lines: columns as wide as they need to be, and the last as it is."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    ]
