"""The reset policy, `auto.offset.reset`, for positions without a committed offset or outside the log.

Kafka's AutoOffsetResetStrategy; `by_duration` is KIP-1106.
"""

import re
from typing import NamedTuple

EARLIEST_TIMESTAMP, LATEST_TIMESTAMP = -2, -1

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{0,9})?)S)?)?",
    re.IGNORECASE,
)
_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}


class OffsetReset(NamedTuple):
    """A reset policy. `duration_ms`: only for `by_duration`."""

    name: str
    duration_ms: int | None = None

    def timestamp(self, wall_ms: int) -> int:
        if self.duration_ms is not None:
            return wall_ms - self.duration_ms
        return EARLIEST_TIMESTAMP if self == EARLIEST else LATEST_TIMESTAMP


EARLIEST, LATEST, NONE = OffsetReset("earliest"), OffsetReset("latest"), OffsetReset("none")
_NAMED = {policy.name: policy for policy in (EARLIEST, LATEST, NONE)}


def offset_reset(configured: str) -> OffsetReset:
    named = _NAMED.get(configured)
    if named is not None:
        return named
    name, _, duration = configured.partition(":")
    found = _DURATION.fullmatch(duration)
    assert found is not None, configured
    parts = {unit: float(number) for unit, number in found.groupdict().items() if number}
    return OffsetReset(name, int(sum(number * _MS[unit] for unit, number in parts.items())))
