"""The reset policy, `auto.offset.reset`, for positions without a committed offset or outside the log.

Kafka's AutoOffsetResetStrategy; `by_duration` is KIP-1106.
"""

from typing import NamedTuple

from sluice.config.value_types import parse_duration_ms

EARLIEST_TIMESTAMP, LATEST_TIMESTAMP = -2, -1


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
    return OffsetReset(name, parse_duration_ms(duration))
