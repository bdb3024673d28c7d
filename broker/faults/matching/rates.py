"""Bytes per second as people write them: a number, or "50k", "1M", "64Ki"."""

from math import isfinite
from typing import overload

from sluice.config.value_types import parse_rate

from .errors import RuleProblem

Rate = str | int | float
_ACCEPTED = "write 50k, 1M, 64Ki, or a number of bytes per second"


@overload
def parse_bytes_per_s(rate: Rate, path: str) -> float: ...
@overload
def parse_bytes_per_s(rate: Rate | None, path: str) -> float | None: ...
def parse_bytes_per_s(rate: Rate | None, path: str) -> float | None:
    """Bytes per second, None for None. Raises RuleProblem, at `path`, for what is no rate above 0."""
    if rate is None:
        return None
    try:
        bytes_per_s = parse_rate(rate) if isinstance(rate, str) else float(rate)
    except (ValueError, OverflowError):
        raise RuleProblem(path, f"{rate!r}: is no rate of 1 byte per second or more; {_ACCEPTED}") from None
    if not isfinite(bytes_per_s) or bytes_per_s <= 0:
        raise RuleProblem(path, f"{rate}: must be above 0 bytes per second; {_ACCEPTED}")
    return bytes_per_s
