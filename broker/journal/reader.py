"""Reads the journal: what is there, and what comes. Readers look into the ring; nothing tells them of a new entry.

    events = cluster.journal.events(client_id="checkout", api="Produce")
    async for event in cluster.journal.follow(kind="throttle"): ...

Whoever follows looks every 20 ms, and takes so many events at once that the broker's clients do not notice. What was
overwritten before it was looked at is told by one `Gap`, whatever the reader asked for: nobody can say what it was.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import NamedTuple

from sluice.clock import Clock, sleep_ms
from sluice.journal_events import KINDS, AnyEvent, Gap, Request
from sluice.protocol.apis import API_KEYS
from sluice.text.did_you_mean import one_of

from .entries import Entry, broker_of, entry, event
from .journal import Journal

POLL_MS = 20.0
# Entries looked at in one turn of the loop: of all of them events are made in about 3 ms.
PAGE_ENTRIES = 256
API_NAMES = tuple(api.name for api in API_KEYS.values())
# Names of filters, and what each must be.
FILTERS = {
    "client_id": "a client id",
    "api": "the name of an API, such as Produce",
    "kind": f"one of {', '.join(KINDS)}",
    "broker": "a node id",
}


class EventFilter(NamedTuple):
    """Which events are read: for each of these, one of its values, or all where it has none."""

    client_ids: Collection[str] = ()
    apis: Collection[str] = ()
    kinds: Collection[str] = ()
    brokers: Collection[int] = ()

    def matches(self, found: Entry) -> bool:
        """Whether this is one of them."""
        return (
            (not self.kinds or found.kind in self.kinds)
            and (not self.apis or found.api in self.apis)
            and (not self.brokers or broker_of(found) in self.brokers)
            and (not self.client_ids or (found.identity is not None and found.identity.client_id in self.client_ids))
        )


def parse_event_filter(given: Mapping[str, Sequence[str]]) -> EventFilter:
    """What filters ask for. Raises ValueError, one line that says what is accepted."""
    unknown = [name for name in given if name not in FILTERS]
    if unknown:
        raise ValueError(f"{unknown[0]} is no filter, which are {', '.join(FILTERS)}")
    brokers = given.get("broker", ())
    for name in brokers:
        if not (name.isascii() and name.isdecimal()):
            raise ValueError(f"broker={name}: must be {FILTERS['broker']}")
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
            raise ValueError(f"{name}={value}: {one_of(value, known)}")


class EventPage(NamedTuple):
    """Some events, and the `seq` of the last entry that was looked at for them."""

    events: list[AnyEvent]
    after: int


class JournalReader:
    """The journal of a cluster, for those who want to know what happened."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock

    @property
    def last_seq(self) -> int:
        """Of the newest event; 0: there was none yet."""
        return self._journal.written

    def events(
        self,
        *,
        after: int = 0,
        kind: str | Collection[str] = (),
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
    ) -> list[AnyEvent]:
        """All events with a `seq` above `after`, oldest first. Raises ValueError for what no event can be."""
        event_filter = _event_filter(kind, client_id, api, broker)
        return self.read(after, event_filter, self._journal.size + 1).events

    def requests(
        self,
        *,
        after: int = 0,
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
    ) -> list[Request]:
        """The requests among them; where some may have been lost, see `events`."""
        found = self.events(after=after, kind="request", client_id=client_id, api=api, broker=broker)
        return [one for one in found if isinstance(one, Request)]

    async def follow(
        self,
        *,
        after: int | None = None,
        kind: str | Collection[str] = (),
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
    ) -> AsyncIterator[AnyEvent]:
        """Yield the events with a `seq` above `after` as they come; None: those from now on."""
        event_filter = _event_filter(kind, client_id, api, broker)
        position = self.last_seq if after is None else after
        while True:
            found = self.read(position, event_filter, PAGE_ENTRIES, PAGE_ENTRIES)
            for one in found.events:
                yield one
            position = found.after
            await self.wait()

    def read(self, after: int, event_filter: EventFilter, limit: int, looked_at: int | None = None) -> EventPage:
        """Up to `limit` wanted events after `after`, from that many entries that are `looked_at`; None: from all."""
        journal = self._journal
        events: list[AnyEvent] = []
        number = min(after, journal.written)
        if number < journal.first:
            events.append(self._gap(number))
            number = journal.first
        end = journal.written if looked_at is None else min(journal.written, number + looked_at)
        while number < end and len(events) < limit:
            found = entry(journal, number)
            if event_filter.matches(found):
                events.append(event(journal, number, found))
            number += 1
        return EventPage(events, number)

    def before_last(self, count: int, event_filter: EventFilter) -> int:
        """After which `seq` the last `count` wanted events are; at the least, those come that are still there."""
        journal = self._journal
        number = journal.written
        while number > journal.first and count:
            number -= 1
            if event_filter.matches(entry(journal, number)):
                count -= 1
        return number

    async def wait(self) -> None:
        """Until it is time to look again."""
        await sleep_ms(self._clock, POLL_MS)

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
