"""What the journal of a run shows: points for failures, states of the cluster, and pairs of events.

It reads the journal's entries, and makes events of those alone whose fields it needs: events of all would take longer
than the rest of this module.

The state of the cluster is the state of each group with its members, assignments and committed offsets, the state of
each transaction, and the leader of each partition. A run that reaches a new one is worth varying.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple
from zlib import crc32

from sluice.broker.journal.entries import (
    Entry,
    RequestEntry,
    at_ns,
    entry,
    error_codes,
    event,
    started_ns,
    transactional_id,
)
from sluice.broker.journal.journal import Journal
from sluice.journal_events import (
    KINDS,
    AnyEvent,
    BrokerState,
    Event,
    GroupState,
    LeaderChange,
    Request,
    TransactionState,
)

from .injection import numberless

_COMMITS = frozenset({"OffsetCommit", "TxnOffsetCommit"})
_ASSIGNMENTS = frozenset({"SyncGroup", "ConsumerGroupHeartbeat"})
_STATES = (GroupState, TransactionState, LeaderChange, BrokerState)
_JOINS = frozenset({"JoinGroup", "ConsumerGroupHeartbeat"})
_NO_PREVIOUS = "its start"


class Point(NamedTuple):
    """A request, at which a failure can be injected.

    client_id, api: client and API of the request; see `numberless`
    nth: its number among the requests of this client to this API, from 1
    previous: API of the client's previous request
    state: hash of the state of the cluster when it was handled
    needs: what a failure at it may need: an application, a member of a group, a transaction
    seq, at_s: its place in the journal, and its time in seconds since the start of the run
    """

    client_id: str
    api: str
    nth: int
    previous: str
    state: int
    needs: frozenset[str]
    seq: int
    at_s: float


class History:
    """What happened in a run.

    points: the requests of the program, in the order in which they were handled
    states: hashes of the states of the cluster
    pairs: events of two clients or groups, of which the first was the last one of its client before the second
    happened: the position in the journal, seconds since the start, and what
    """

    def __init__(self, journal: Journal, left_out: Collection[str], began_ns: int) -> None:
        """`left_out`: client ids that are not part of the program."""
        self.points: list[Point] = []
        self.states: set[int] = set()
        self.pairs: set[tuple[str, str]] = set()
        self.happened: list[tuple[float, float, str]] = []
        self._journal = journal
        self._began_ns = began_ns
        self._state: dict[tuple[str, ...], object] = {}
        self._hash = 0
        self._counts: Counter[tuple[str, str]] = Counter()
        self._previous: dict[str, str] = {}
        self._last: dict[str, str] = {}
        self._members: set[str] = set()  # client ids
        for begins, number, found in _in_order(journal):
            if not isinstance(found, RequestEntry):
                if KINDS[found.kind] in _STATES:
                    self._add_event(event(journal, number, found))
            elif found.identity.client_id not in left_out:
                if begins:
                    self._add_point(number, found)
                elif not any(error_codes(found)):
                    self._end(number, found)

    def _add_point(self, number: int, found: RequestEntry) -> None:
        client, api = numberless(found.identity.client_id), found.api
        self._counts[client, api] += 1
        previous = self._previous.get(client, _NO_PREVIOUS)
        self.points.append(
            Point(
                client,
                api,
                self._counts[client, api],
                previous,
                self._hash,
                _needs(found, is_member=found.identity.client_id in self._members),
                number + 1,
                self._at_s(started_ns(self._journal, found)),
            )
        )
        self._previous[client] = api
        self._add_pairs(found.identity.client_id, f"{api} of {client}")

    def _end(self, number: int, found: RequestEntry) -> None:
        """Add what a successful request has changed."""
        api = found.api
        if api in _COMMITS or api in _ASSIGNMENTS:
            request = event(self._journal, number, found)
            assert isinstance(request, Request)
            self._change(_changes(request))
        if api in _JOINS:
            self._members.add(found.identity.client_id)

    def _add_event(self, event: AnyEvent) -> None:
        if isinstance(event, GroupState):
            self._change({("group", event.group_id): (event.after, event.members)})
            text = f"group {event.group_id} is {event.after}"
            self._add_pairs(f"group {event.group_id}", text)
            self._note(event, f"{text} with {event.members} members")
        elif isinstance(event, TransactionState):
            self._change({("transaction", event.transactional_id): event.after})
            text = f"transaction {event.transactional_id} is {event.after}"
            self._add_pairs(f"transaction {event.transactional_id}", text)
            self._note(event, text)
        elif isinstance(event, LeaderChange):
            self._change({("leader", event.topic, str(event.partition)): event.broker})
            if not event.topic.startswith("__") and event.before >= 0:
                self._note(event, f"the leader of {event.topic}-{event.partition} is broker {event.broker}")
        elif isinstance(event, BrokerState) and event.state in ("running", "stopped"):
            self._note(event, f"broker {event.broker} is {event.state}")

    def _change(self, changes: Mapping[tuple[str, ...], object]) -> None:
        if changes:
            self._state |= changes
            self._hash = crc32(repr(sorted(self._state.items(), key=repr)).encode())
            self.states.add(self._hash)

    def _add_pairs(self, who: str, what: str) -> None:
        self.pairs.update((last, what) for other, last in self._last.items() if other != who)
        self._last[who] = what

    def _note(self, event: Event, text: str) -> None:
        self.happened.append((event.seq, self._at_s(event.at_ns), text))

    def _at_s(self, at_ns: int) -> float:
        return max(0.0, (at_ns - self._began_ns) / 1e9)  # the times of the journal are rounded


def _in_order(journal: Journal) -> Iterator[tuple[bool, int, Entry]]:
    """Yield the number and entry of events in order: of a request when its handling begins (True), and when it ends."""
    ends = [entry(journal, number) for number in range(journal.first, journal.written)]
    times = [at_ns(journal, found) for found in ends]
    moments = [(float(place), 0, False, place) for place in range(len(ends))]
    for place, found in enumerate(ends):
        if isinstance(found, RequestEntry):
            # Most requests begin and end at one virtual time. Others have waited since an earlier one.
            started = started_ns(journal, found)
            begins = bisect_right(times, started) if started < times[place] else place
            moments.append((begins - 0.5, started, True, place))
    moments.sort(key=itemgetter(0, 1))
    return ((begins, journal.first + place, ends[place]) for _, _, begins, place in moments)


def _needs(found: RequestEntry, *, is_member: bool) -> frozenset[str]:
    # Applications have hosts of their own; the program itself runs on that of the brokers.
    is_application = not found.identity.peer.startswith("127.")
    met = {"application": is_application, "member": is_member, "transaction": bool(transactional_id(found))}
    return frozenset(name for name, is_met in met.items() if is_met)


def _changes(request: Request) -> Mapping[tuple[str, ...], object]:
    """Return what a successful request changed in the state of the cluster."""
    if request.api in _COMMITS:
        key = (request.api, request.group_id)
        return {(*key, each.topic, str(each.partition)): each.offset for each in request.partitions}
    if "assignment" in request.returned:
        member = (request.group_id, request.client_id, request.peer.rpartition(":")[0])
        return {("assignment", *member): request.returned["assignment"]}
    return {}
