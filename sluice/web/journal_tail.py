"""The newest journal events, in the format of `sluice journal tail`.

At thousands of events per second, only the newest are returned, with the number of omitted ones. Event objects, which
are expensive, are created only for these.
"""

from msgspec import Struct

from sluice.broker.journal.entries import entry, event
from sluice.broker.journal.format_event import what
from sluice.broker.journal.journal import Journal
from sluice.broker.journal.reader import EventFilter
from sluice.journal_events import AnyEvent, ClientEvent, Fault, Request, ShadowThrottle, Throttle

_MOST_LINES = 50
# Entries to filter, at 1 to 2 us each; older ones are skipped.
_MOST_ENTRIES = 16_384
_NS_PER_MS = 1_000_000


class Line(Struct, frozen=True, gc=False):
    """One event.

    tone: highlighting: wait, fault, error or ""
    """

    seq: int
    at_ms: float
    kind: str
    broker: int
    connection: int
    client_id: str
    tone: str
    what: str


class Lines(Struct, frozen=True, gc=False):
    """The newest lines, oldest first.

    left_off: number of matching events that are omitted
    after: `seq` of the newest event that was read
    """

    lines: list[Line]
    left_off: int
    after: int


def newest(journal: Journal, wanted: EventFilter, after: int) -> Lines:
    first = max(after, journal.first, journal.written - _MOST_ENTRIES)
    numbers: list[int] = []
    left_off = 0
    matches_all = not any(wanted)
    for number in range(journal.written - 1, first - 1, -1):
        if matches_all and len(numbers) == _MOST_LINES:
            left_off += number + 1 - first
            break
        if not wanted.matches(entry(journal, number)):
            continue
        if len(numbers) < _MOST_LINES:
            numbers.append(number)
        else:
            left_off += 1
    lines = [_line(event(journal, number, entry(journal, number))) for number in reversed(numbers)]
    return Lines(lines, left_off, journal.written)


def _line(found: AnyEvent) -> Line:
    client = found if isinstance(found, ClientEvent) else None
    return Line(
        seq=found.seq,
        at_ms=found.at_ns / _NS_PER_MS,
        kind=str(found.__struct_config__.tag),
        broker=found.broker,
        connection=0 if client is None else client.connection,
        client_id="" if client is None else client.client_id,
        tone=_tone(found),
        what=what(found),
    )


def _tone(found: AnyEvent) -> str:
    match found:
        case Throttle() | ShadowThrottle():
            return "wait"
        case Fault():
            return "fault"
        case Request() if found.rule_id:
            return "fault"
        case Request() if any(found.error_codes):
            return "error"
        case Request() if found.throttle_time_ms:
            return "wait"
    return ""
