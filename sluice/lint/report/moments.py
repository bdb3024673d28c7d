"""Times of events for people."""

from datetime import UTC, datetime


def moment(at_ns: int) -> str:
    """Return the time of day in UTC, with milliseconds."""
    return datetime.fromtimestamp(at_ns // 1_000_000 / 1e3, UTC).strftime("%H:%M:%S.%f")[:-3]
