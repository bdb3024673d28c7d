"""Compact numbers, times, bars and sparklines."""

import pytest

from sluice.cli.top.text import bar, short, sparkline, waits

NUMBERS = [(0, "0"), (950, "950"), (999.6, "1.0k"), (1234, "1.2k"), (12_345, "12k"), (2e6, "2.0M"), (5e17, "500P")]


@pytest.mark.parametrize(("number", "shown"), NUMBERS)
def test_number_is_short(number: float, shown: str) -> None:
    assert short(number) == shown


# Also of the web page: tests/browser/test_format.py.
DURATIONS = {
    7: "7 ms",
    999.4: "999 ms",
    999.6: "1.0 s",
    8_100: "8.1 s",
    9_960: "10 s",
    59_400: "59 s",
    59_600: "1 min 0 s",
    119_600: "2 min 0 s",
    152_000: "2 min 32 s",
    3_599_600: "1 h 0 min",
    11_100_000: "3 h 5 min",
    7_199_000: "2 h 0 min",
}


@pytest.mark.parametrize(("ms", "shown"), DURATIONS.items())
def test_duration_has_a_suitable_unit(ms: float, shown: str) -> None:
    assert waits(ms) == shown


@pytest.mark.parametrize(
    ("share", "cells", "style"), [(0.5, 5, "green"), (0.9, 9, "yellow"), (1.0, 10, "yellow"), (7.0, 10, "red")]
)
def test_bar_is_full_at_the_quota_and_red_above(share: float, cells: int, style: str) -> None:
    text = bar(share, 10)
    assert text.plain == "━" * cells + "─" * (10 - cells)
    assert text.style == style


def test_sparkline_ends_with_the_newest_sample() -> None:
    points = [(100, 800, 0), (119, 100, 0), (120, 0, 1)]
    text = sparkline(points, look=120, looks=40, width=20)
    assert text.plain == " " * 9 + "█" + " " * 9 + "▂", text.plain
    assert [str(span.style) for span in text.spans][-1] == "red"


def test_idle_client_has_an_empty_sparkline() -> None:
    assert sparkline([], 5, 240, 8).plain == " " * 8
