"""The newest of the journal, in the words of `sluice journal tail`.

Nobody reads a thousand lines a second: of what came since the last look, the newest are told, and how many more there
were. Events are made, which is dear, of those alone.
"""

from msgspec import Struct

from sluice.broker.journal.entries import entry, event
from sluice.broker.journal.format_event import what
from sluice.broker.journal.journal import Journal
from sluice.broker.journal.reader import EventFilter
from sluice.journal_events import AnyEvent, ClientEvent, Fault, Request, Throttle

# Lines of one look.
_MOST = 50
# Entries looked at for them, which takes 1 to 2 us each: what came before counts as not told.
_LOOKED_AT = 16_384
_NS_PER_MS = 1_000_000


class Line(Struct, frozen=True, gc=False):
    """One event.

    tone: what to mark it as: wait, fault, error, or nothing
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
    """What there is to tell: the lines, the oldest first, and how many came that are not among them.

    after: the `seq` of the newest event that was looked at
    """

    lines: list[Line]
    left_off: int
    after: int


def newest(journal: Journal, wanted: EventFilter, after: int) -> Lines:
    """Of the events with a `seq` above `after`, the newest that are wanted."""
    first = max(after, journal.first, journal.written - _LOOKED_AT)
    numbers: list[int] = []
    left_off = 0
    takes_all = not any(wanted)
    for number in range(journal.written - 1, first - 1, -1):
        if takes_all and len(numbers) == _MOST:
            left_off += number + 1 - first
            break
        if not wanted.matches(entry(journal, number)):
            continue
        if len(numbers) < _MOST:
            numbers.append(number)
        else:
            left_off += 1
    lines = [_line(event(journal, number, entry(journal, number))) for number in reversed(numbers)]
    return Lines(lines, left_off, journal.written)


def _line(told: AnyEvent) -> Line:
    client = told if isinstance(told, ClientEvent) else None
    return Line(
        seq=told.seq,
        at_ms=told.at_ns / _NS_PER_MS,
        kind=str(told.__struct_config__.tag),
        broker=told.broker,
        connection=0 if client is None else client.connection,
        client_id="" if client is None else client.client_id,
        tone=_tone(told),
        what=what(told),
    )


def _tone(told: AnyEvent) -> str:
    match told:
        case Throttle():
            return "wait"
        case Fault():
            return "fault"
        case Request() if told.rule_id:
            return "fault"
        case Request() if any(told.error_codes):
            return "error"
        case Request() if told.throttle_time_ms:
            return "wait"
    return ""
