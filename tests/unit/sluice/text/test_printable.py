"""What others have named cannot forge a line, nor steer a terminal."""

import pytest

from sluice.text.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("orders-*, größer <b>", "orders-*, größer <b>", id="what can be printed stays"),
        pytest.param("shop\n12:00 all is well", "shop\\n12:00 all is well", id="a line does not end"),
        pytest.param("\x1b[31mred\r", "\\x1b[31mred\\r", id="a terminal is not told anything"),
        pytest.param(
            "a\u202eb\u2028\ud800", "a\\u202eb\\u2028\\ud800", id="nor is an order of letters, or half a letter"
        ),
    ],
)
def test_it_stays_one_line(text: str, shown: str) -> None:
    assert printable(text) == shown
