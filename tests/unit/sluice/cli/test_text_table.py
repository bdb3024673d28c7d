"""Plain-text tables."""

import sys

import pytest

from sluice.cli.text_table import table


def test_columns_fit_their_widest_cell() -> None:
    assert table(("A", "LONG", "C"), [("1234", "x", "last one"), ("1", "", "")]) == [
        "A     LONG  C",
        "1234  x     last one",
        "1",
    ]


def test_row_is_one_line_for_any_content() -> None:
    assert table(("A", "B"), [("x\ny", "z")]) == ["A     B", "x\\ny  z"]


ROWS = [("fault-1", "in force", "action=close when=mid-response"), ("fault-2", "over", "action=delay")]


def test_terminal_table_wraps_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    assert table(("RULE", "STATE", "WHAT IT DOES"), ROWS) == [
        "RULE     STATE     WHAT IT DOES",
        "fault-1  in force  action=close",
        "                   when=mid-response",
        "fault-2  over      action=delay",
    ]


def test_narrow_terminal_breaks_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "10")
    assert table(("RULE", "STATE", "WHAT IT DOES"), ROWS)[1:4] == [
        "fault-1  in     action=close",
        "         force  when=mid-response",
        "fault-2  over   action=delay",
    ]
