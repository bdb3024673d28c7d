"""Bytes per second as a number or text: "50k", "1M", "64Ki"."""

from math import isfinite
from typing import overload

from sluice.config.value_types import parse_rate

from .errors import RuleProblem

Rate = str | int | float
_ACCEPTED = "expected 50k, 1M, 64Ki, or a number of bytes per second"


@overload
def parse_bytes_per_s(rate: Rate, path: str) -> float: ...
@overload
def parse_bytes_per_s(rate: Rate | None, path: str) -> float | None: ...
def parse_bytes_per_s(rate: Rate | None, path: str) -> float | None:
    if rate is None:
        return None
    try:
        bytes_per_s = parse_rate(rate) if isinstance(rate, str) else float(rate)
    except (ValueError, OverflowError):
        raise RuleProblem(path, f"{_ACCEPTED}, at least 1, got {rate!r}") from None
    if not isfinite(bytes_per_s) or bytes_per_s <= 0:
        raise RuleProblem(path, f"{_ACCEPTED}, above 0, got {rate}")
    return bytes_per_s
