"""Tables as plain text."""

import sys

import pytest

from sluice.cli.text_table import table


def test_columns_are_as_wide_as_they_need_to_be() -> None:
    assert table(("A", "LONG", "C"), [("1234", "x", "last one"), ("1", "", "")]) == [
        "A     LONG  C",
        "1234  x     last one",
        "1",
    ]


def test_a_row_is_one_line_whatever_is_in_it() -> None:
    assert table(("A", "B"), [("x\ny", "z")]) == ["A     B", "x\\ny  z"]


ROWS = [
    ("fault-1", "in force", "action=close when=mid-response"),
    ("fault-2", "over", "action=delay"),
]


def test_a_terminal_gets_cells_of_as_many_lines_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    assert table(("RULE", "STATE", "WHAT IT DOES"), ROWS) == [
        "RULE     STATE     WHAT IT DOES",
        "fault-1  in force  action=close",
        "                   when=mid-response",
        "fault-2  over      action=delay",
    ]


def test_no_word_is_broken_for_a_terminal_that_is_too_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "10")
    assert table(("RULE", "STATE", "WHAT IT DOES"), ROWS)[1:4] == [
        "fault-1  in     action=close",
        "         force  when=mid-response",
        "fault-2  over   action=delay",
    ]
