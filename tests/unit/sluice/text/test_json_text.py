"""Human-readable JSON."""

import json
from typing import NamedTuple

from sluice.text.json_text import json_text


class _Row(NamedTuple):
    name: str
    total: int | None


def test_characters_that_hide_or_reorder_text_are_escaped() -> None:
    text = "a\x1b\x7f\x9b\u202e\u2028b"
    printed = json_text({"client": text})
    assert printed == '{\n  "client": "a\\u001b\\u007f\\u009b\\u202e\\u2028b"\n}'
    assert json.loads(printed) == {"client": text}


def test_json_has_several_lines_and_unescaped_characters() -> None:
    assert (
        json_text({"rows": [_Row("küche", None)]}) == '{\n  "rows": [\n    [\n      "küche",\n      null\n    ]\n  ]\n}'
    )
