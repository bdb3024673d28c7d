"""A line of Kafka's request log: its time, and the completed request in it, which is JSON since Kafka 2.8."""

import re
from datetime import UTC, datetime

_BEGINS = "Completed request:"
_NS_PER_MS = 1_000_000
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[,.](\d{3})\d*(Z|[+-]\d\d(?::?\d\d)?)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NotUnderstoodError(ValueError):
    """The reason why a line cannot be read."""


def split_json(line: str) -> tuple[int, str]:
    """Return when the line was written, in ns, and the JSON in it. Timestamps without a zone are UTC."""
    before, begins, body = line.partition(_BEGINS)
    if not begins:
        raise NotUnderstoodError("neither a journal event nor a completed request of Kafka's request log")
    time = _TIME.search(before)
    if time is None:
        raise NotUnderstoodError("completed request without a timestamp; expected one such as 2026-01-31 12:00:00,000")
    day, clock, millis, zone = time.groups()
    try:
        at = datetime.fromisoformat(f"{day}T{clock}{zone or '+00:00'}")
    except ValueError as error:
        raise NotUnderstoodError(f"completed request with an invalid timestamp: {error}") from None
    if not body.startswith("{"):
        raise NotUnderstoodError("request in the text form of Kafka before 2.8; expected JSON")
    since = at - _EPOCH
    at_ns = ((since.days * 86_400 + since.seconds) * 1000 + int(millis)) * _NS_PER_MS
    text, end, _ = body.rpartition("}")
    if not end:
        raise NotUnderstoodError("malformed completed request: truncated JSON")
    return at_ns, text + end
