"""YAML 1.2. PyYAML implements 1.1, where `on: [1, 4]` has the key True, `1:30` is 90, and dates are not text.

Duplicate keys and tags, which PyYAML accepts, are rejected; merge keys (`<<`) are those of 1.1.
"""

import re
from collections.abc import Hashable
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  (as in its parent)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # in the stubs
        if getattr(event, "tag", None) is not None:
            raise yaml.constructor.ConstructorError(None, None, "expected a value without a tag", event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "expected text as key", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value}", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+0123456789."),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))


def parse_yaml(text: str) -> object:
    """Parse a document. Raises ValueError, one line with the position."""
    try:
        found: object = yaml.load(text, _Loader)  # noqa: S506  (a SafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(_format(error)) from None
    return found


def _format(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem} (at line {mark.line + 1}, column {mark.column + 1})"
    return " ".join(str(error).split())
