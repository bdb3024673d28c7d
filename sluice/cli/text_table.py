"""Plain-text tables: one line per row in files and pipes, wrapped to the width of a terminal."""

import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from sluice.text.error_text import printable

_GAP = "  "


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    rows = [head, *([printable(cell) for cell in row] for row in rows)]
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    width = terminal_width()
    if width is not None:
        words = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
        _narrow(widths, words, width - len(_GAP) * (len(widths) - 1))
    return [line for row in rows for line in _lines(row, widths)]


def terminal_width() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _narrow(widths: list[int], words: Sequence[int], room: int) -> None:
    """Shrink the widest columns, never below their longest word."""
    while sum(widths) > room:
        wide = [number for number, width in enumerate(widths) if width > words[number]]
        if not wide:
            return
        widths[max(wide, key=widths.__getitem__)] -= 1


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    cells = [
        textwrap.wrap(cell, width, break_on_hyphens=False) if len(cell) > width else [cell]
        for cell, width in zip(row, widths, strict=True)
    ]
    return [
        _GAP.join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip()
        for parts in zip_longest(*cells, fillvalue="")
    ]
