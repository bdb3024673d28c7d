"""Readers of the journal: events in the ring, and new ones.

    events = cluster.journal.events(client_id="checkout", api="Produce")
    async for event in cluster.journal.follow(kind="throttle"): ...

`follow` polls every 20 ms and reads few events at once, to not delay the broker's clients. A `Gap` reports the number
of overwritten events, regardless of the filter.
"""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from sluice.clock import Clock, sleep_ms
from sluice.errors import ArgumentError
from sluice.journal_events import KINDS, AnyEvent, Gap, Request
from sluice.protocol.apis import API_KEYS
from sluice.text.arguments import Index, checks_arguments
from sluice.text.error_text import expected, one_of, unknown

from .entries import Entry, RequestEntry, api_of, broker_of, entry, event, received_ns
from .journal import Journal

POLL_MS = 20.0
# Per event-loop iteration; converting all of them to events takes about 3 ms.
PAGE_ENTRIES = 256
API_NAMES = tuple(api.name for api in API_KEYS.values())
FILTERS = {
    "client_id": "a client id",
    "api": "the name of an API, such as Produce",
    "kind": f"one of {', '.join(KINDS)}",
    "broker": "a node id",
}


class EventFilter(NamedTuple):
    """A filter: an event must match one value of each field; an empty field matches all."""

    client_ids: Collection[str] = ()
    apis: Collection[str] = ()
    kinds: Collection[str] = ()
    brokers: Collection[int] = ()

    def matches(self, found: Entry) -> bool:
        return (
            (not self.kinds or found.kind in self.kinds)
            and (not self.apis or found.api in self.apis)
            and (not self.brokers or broker_of(found) in self.brokers)
            and (not self.client_ids or (found.identity is not None and found.identity.client_id in self.client_ids))
        )


def parse_event_filter(given: Mapping[str, Sequence[str]]) -> EventFilter:
    """Return the filter. Raises ArgumentError."""
    for name in given:
        if name not in FILTERS:
            raise ArgumentError(f"{name}: {unknown('filter', name, FILTERS)}")
    brokers = given.get("broker", ())
    for name in brokers:
        if not (name.isascii() and name.isdecimal()):
            raise ArgumentError(f"broker: {expected(FILTERS['broker'], name)}")
    _known("kind", given.get("kind", ()), KINDS)
    _known("api", given.get("api", ()), API_NAMES)
    return EventFilter(
        client_ids=frozenset(given.get("client_id", ())),
        apis=frozenset(given.get("api", ())),
        kinds=frozenset(given.get("kind", ())),
        brokers=frozenset(map(int, brokers)),
    )


def _known(name: str, values: Collection[str], known: Collection[str]) -> None:
    for value in values:
        if value not in known:
            raise ArgumentError(f"{name}: {one_of(known, value)}")


class EventPage(NamedTuple):
    """Some events, and the `seq` of the last entry that was read for them."""

    events: list[AnyEvent]
    after: int


@partial(checks_arguments, but=("__init__",))  # only a broker and a proxy make one, at each use of `journal`
class JournalReader:
    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock

    @property
    def last_seq(self) -> int:
        return self._journal.written

    def events(
        self,
        *,
        after: Index = 0,
        kind: str | Collection[str] = (),
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
    ) -> list[AnyEvent]:
        """Return all events with a `seq` above `after`, oldest first. Raises ArgumentError for unknown values."""
        return self._all(after, _event_filter(kind, client_id, api, broker))

    def requests(
        self,
        *,
        after: Index = 0,
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
    ) -> list[Request]:
        """Return the requests among the events. Use `events` to detect lost ones."""
        found = self._all(after, _event_filter("request", client_id, api, broker))
        return [one for one in found if isinstance(one, Request)]

    def received(self, *, after: Index = 0) -> Iterator[tuple[str, int]]:
        """Yield the API and `received_ns` of each request with a `seq` above `after`, without creating events."""
        journal = self._journal
        for number in range(max(after, journal.first), journal.written):
            found = entry(journal, number)
            if isinstance(found, RequestEntry):
                yield found.api, received_ns(journal, found)

    async def follow(
        self,
        *,
        after: Index | None = None,
        kind: str | Collection[str] = (),
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
    ) -> AsyncIterator[AnyEvent]:
        """Yield events with a `seq` above `after` as they are recorded; None starts at the next event."""
        event_filter = _event_filter(kind, client_id, api, broker)
        position = self.last_seq if after is None else after
        while True:
            found = self.read(position, event_filter, PAGE_ENTRIES, PAGE_ENTRIES)
            for one in found.events:
                yield one
            position = found.after
            await self.wait()

    def read(self, after: int, event_filter: EventFilter, limit: int, max_entries: int | None = None) -> EventPage:
        """Return up to `limit` matching events from the next `max_entries` entries (None: all)."""
        journal = self._journal
        events: list[AnyEvent] = []
        number = min(after, journal.written)
        if number < journal.first:
            events.append(self._gap(number))
            number = journal.first
        end = journal.written if max_entries is None else min(journal.written, number + max_entries)
        apis = event_filter.apis
        while number < end and len(events) < limit:
            # Waits of tests read all entries again and again, mostly for those of one API.
            if not apis or api_of(journal.entry(number)) in apis:
                found = entry(journal, number)
                if event_filter.matches(found):
                    events.append(event(journal, number, found))
            number += 1
        return EventPage(events, number)

    def before_last(self, count: int, event_filter: EventFilter) -> int:
        """Return the `seq` before the last `count` matching events; with fewer, before the oldest entry."""
        journal = self._journal
        number = journal.written
        while number > journal.first and count:
            number -= 1
            if event_filter.matches(entry(journal, number)):
                count -= 1
        return number

    async def wait(self) -> None:
        await sleep_ms(self._clock, POLL_MS)

    def _all(self, after: int, event_filter: EventFilter) -> list[AnyEvent]:
        return self.read(after, event_filter, self._journal.size + 1).events

    def _gap(self, after: int) -> Gap:
        journal = self._journal
        at_ns = journal.ns(journal.ms(entry(journal, journal.first).at))
        return Gap(seq=journal.first, at_ns=at_ns, broker=-1, lost=journal.first - after)


def _event_filter(
    kind: str | Collection[str],
    client_id: str | Collection[str],
    api: str | Collection[str],
    broker: int | Collection[int],
) -> EventFilter:
    given = {"kind": _several(kind), "client_id": _several(client_id), "api": _several(api)}
    brokers = (broker,) if isinstance(broker, int) else broker
    return parse_event_filter({**given, "broker": [str(each) for each in brokers]})


def _several(values: str | Collection[str]) -> Sequence[str]:
    return (values,) if isinstance(values, str) else tuple(values)
