"""Untrusted names cannot forge a log line or control a terminal."""

import pytest

from sluice.text.error_text import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("orders-*, größer <b>", "orders-*, größer <b>", id="printable text is unchanged"),
        pytest.param("shop\n12:00 all is well", "shop\\n12:00 all is well", id="a line break is escaped"),
        pytest.param("\x1b[31mred\r", "\\x1b[31mred\\r", id="control characters are escaped"),
        pytest.param(
            "a\u202eb\u2028\ud800", "a\\u202eb\\u2028\\ud800", id="text direction marks and lone surrogates are escaped"
        ),
    ],
)
def test_untrusted_text_stays_one_line(text: str, shown: str) -> None:
    assert printable(text) == shown
