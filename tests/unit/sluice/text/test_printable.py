"""Untrusted names cannot forge a log line or control a terminal."""

import pytest

from sluice.text.error_text import printable

TEXTS = {
    "printable text is unchanged": ("orders-*, größer <b>", "orders-*, größer <b>"),
    "a line break is escaped": ("shop\n12:00 all is well", "shop\\n12:00 all is well"),
    "control characters are escaped": ("\x1b[31mred\r", "\\x1b[31mred\\r"),
    "text direction marks and lone surrogates are escaped": ("a\u202eb\u2028\ud800", "a\\u202eb\\u2028\\ud800"),
}


@pytest.mark.parametrize(("text", "shown"), TEXTS.values(), ids=TEXTS)
def test_untrusted_text_stays_one_line(text: str, shown: str) -> None:
    assert printable(text) == shown
