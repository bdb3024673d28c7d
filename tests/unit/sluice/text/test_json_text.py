"""Values as JSON for people."""

from typing import NamedTuple

from sluice.text.json_text import json_text


class _Row(NamedTuple):
    name: str
    total: int | None


def test_a_value_is_printed_over_several_lines_with_its_own_characters() -> None:
    assert (
        json_text({"rows": [_Row("küche", None)]}) == '{\n  "rows": [\n    [\n      "küche",\n      null\n    ]\n  ]\n}'
    )
