"""What the journal of a run shows: points for failures, states of the cluster, and pairs of events.

The state of the cluster is the state of each group with its members, assignments and committed offsets, the state of
each transaction, and the leader of each partition. A run that reaches a new one is worth varying.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple
from zlib import crc32

from sluice.journal_events import AnyEvent, BrokerState, Event, GroupState, LeaderChange, Request, TransactionState

_COMMITS = frozenset({"OffsetCommit", "TxnOffsetCommit"})
_JOINS = frozenset({"JoinGroup", "ConsumerGroupHeartbeat"})
_NO_PREVIOUS = "its start"


class Point(NamedTuple):
    """A request, at which a failure can be injected.

    client_id, api: client and API of the request
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

    def __init__(self, events: Iterable[AnyEvent], left_out: Collection[str], began_ns: int) -> None:
        """`left_out`: client ids that are not part of the program."""
        self.points: list[Point] = []
        self.states: set[int] = set()
        self.pairs: set[tuple[str, str]] = set()
        self.happened: list[tuple[float, float, str]] = []
        self._began_ns = began_ns
        self._state: dict[tuple[str, ...], object] = {}
        self._hash = 0
        self._counts: Counter[tuple[str, str]] = Counter()
        self._previous: dict[str, str] = {}
        self._last: dict[str, str] = {}
        self._members: set[str] = set()  # client ids
        for begins, event in _in_order(events):
            if not isinstance(event, Request):
                self._add_event(event)
            elif event.client_id not in left_out:
                if begins:
                    self._add_point(event)
                else:
                    self._change(_changes(event))
                    if event.api in _JOINS and not any(event.error_codes):
                        self._members.add(event.client_id)

    def _add_point(self, request: Request) -> None:
        client, api = request.client_id, request.api
        self._counts[client, api] += 1
        previous = self._previous.get(client, _NO_PREVIOUS)
        self.points.append(
            Point(
                client,
                api,
                self._counts[client, api],
                previous,
                self._hash,
                _needs(request, is_member=client in self._members),
                request.seq,
                self._at_s(request.started_ns),
            )
        )
        self._previous[client] = api
        self._add_pairs(client, f"{api} of {client}")

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


def _in_order(events: Iterable[AnyEvent]) -> Iterator[tuple[bool, AnyEvent]]:
    """Yield events in order: a request when its handling begins (True), and when it ends (False)."""
    ends = list(events)
    times = [event.at_ns for event in ends]
    moments = [(float(number), 0, False, event) for number, event in enumerate(ends)]
    for number, event in enumerate(ends):
        if isinstance(event, Request):
            # Most requests begin and end at one virtual time. Others have waited since an earlier one.
            has_waited = event.started_ns < event.at_ns
            begins = bisect_right(times, event.started_ns) if has_waited else number
            moments.append((begins - 0.5, event.started_ns, True, event))
    moments.sort(key=itemgetter(0, 1))
    return ((begins, event) for _, _, begins, event in moments)


def _needs(request: Request, *, is_member: bool) -> frozenset[str]:
    # Applications have hosts of their own; the program itself runs on that of the brokers.
    is_application = not request.peer.startswith("127.")
    found = {"application": is_application, "member": is_member, "transaction": bool(request.transactional_id)}
    return frozenset(name for name, is_met in found.items() if is_met)


def _changes(request: Request) -> Mapping[tuple[str, ...], object]:
    """Return what a successful request changed in the state of the cluster."""
    if any(request.error_codes):
        return {}
    if request.api in _COMMITS:
        key = (request.api, request.group_id)
        return {(*key, each.topic, str(each.partition)): each.offset for each in request.partitions}
    if "assignment" in request.returned:
        member = (request.group_id, request.client_id, request.peer.rpartition(":")[0])
        return {("assignment", *member): request.returned["assignment"]}
    return {}
