"""Patterns of names with `*`, `?` and `[abc]`."""

import re
from collections.abc import Callable
from fnmatch import translate

_ANYTHING = "*"

Test = Callable[[str], object]


def glob(pattern: str | None) -> Test:
    """Return a test of names; None matches all."""
    if pattern is None or pattern == _ANYTHING:
        return lambda _: True
    if not {"*", "?", "["} & {*pattern}:
        return pattern.__eq__
    return re.compile(translate(pattern)).match
