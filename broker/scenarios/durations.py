"""Durations as people write them: "250ms", "5s", "2m", or a number of milliseconds."""

import re
from typing import Annotated

from msgspec import Meta

_ACCEPTED = "a duration such as 250ms, 5s or 2m, or a number of milliseconds"
_LONGEST_MS = 10**9  # 11 days; infinity, which TOML has, is no time to wait for
_Text = Annotated[str, Meta(pattern=r"^[0-9]{1,6}(\.[0-9]{1,6})?(ms|s|m)$")]
_Number = Annotated[int, Meta(ge=0, le=_LONGEST_MS)] | Annotated[float, Meta(ge=0, le=_LONGEST_MS)]
Duration = Annotated[_Text | _Number, Meta(description=_ACCEPTED)]
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000}
_PARTS = re.compile(r"([0-9.]+)(ms|s|m)")


def milliseconds(duration: str | float) -> float:
    """How long that is; text is as `Duration` has it."""
    if not isinstance(duration, str):
        return float(duration)
    parts = _PARTS.fullmatch(duration)
    assert parts is not None, duration
    return float(parts[1]) * _UNITS_MS[parts[2]]


def in_words(ms: float) -> str:
    """Such as 250 ms, 1.5 s."""
    return f"{ms:g} ms" if ms < 1000 else f"{ms / 1000:g} s"
