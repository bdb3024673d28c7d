"""Tables as plain text."""

from sluice.cli.text_table import table


def test_columns_are_as_wide_as_they_need_to_be() -> None:
    assert table(("A", "LONG", "C"), [("1234", "x", "last one"), ("1", "", "")]) == [
        "A     LONG  C",
        "1234  x     last one",
        "1",
    ]


def test_a_row_is_one_line_whatever_is_in_it() -> None:
    assert table(("A", "B"), [("x\ny", "z")]) == ["A     B", "x\\ny  z"]
