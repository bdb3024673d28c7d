"""Human-readable JSON."""

from typing import NamedTuple

from sluice.text.json_text import json_text


class _Row(NamedTuple):
    name: str
    total: int | None


def test_json_has_several_lines_and_unescaped_characters() -> None:
    assert (
        json_text({"rows": [_Row("küche", None)]}) == '{\n  "rows": [\n    [\n      "küche",\n      null\n    ]\n  ]\n}'
    )
