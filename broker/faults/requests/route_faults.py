"""The rules that may hit requests of one API and version on one broker, indexed: what cannot match costs nothing.

A route without rules is as it was. One with rules has `RouteFaults.handle` in place of its handler, which asks

- who sends: for each client id, software, principal and listener it is remembered which rules may hit them;
- what is named: of those rules, which are about a topic, partition, group or transactional id is remembered for each;
  and of Produce, nearly every request of which names one partition, for all that it names together.

Only rules that are left then are asked about the request itself.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from sluice.broker.dispatch.dispatcher import Route
from sluice.broker.faults.actions.action import RequestAction, RuleHit
from sluice.broker.faults.fault import Fault, RuleOwner
from sluice.broker.metadata.topic import JOURNAL_TOPIC
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.protocol.apis import PRODUCE
from sluice.protocol.apis.fetch import FetchRequest
from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.entities import RequestEntities, all_topics_selector, reader_of
from sluice.protocol.message import Message

from .fault_execution import FaultExecution

if TYPE_CHECKING:
    from sluice.broker.faults.target import FaultedBroker
    from sluice.broker.handlers.services import AllServices

# How many clients, and names of topics and the like for each, are remembered before all are forgotten.
_MOST_REMEMBERED = 4096
# What a produce request with one partition names: the topic's name or id, the partition, the transactional id.
_One = tuple[str | bytes, int, str | None]
_Who = tuple[str, tuple[str, str], str, str]


class RouteFaults:
    """The rules of one route, in the order they were added."""

    def __init__(self, owner: RuleOwner, broker: "FaultedBroker", route: Route) -> None:
        self.faults: dict[Fault, None] = {}
        self._owner = owner
        self._broker = broker
        self._route = route
        self._is_produce = route.api_key == PRODUCE
        self._read = reader_of(route.api_key)
        self._selects_all = all_topics_selector(route.api_key)
        self._of_clients: dict[_Who, _OfClient | None] = {}

    def add(self, fault: Fault) -> None:
        self.faults[fault] = None
        self._of_clients.clear()

    def discard(self, fault: Fault) -> None:
        if fault in self.faults:
            del self.faults[fault]
            self._of_clients.clear()

    def handle(self, ctx: RequestContext, request: Message, services: "AllServices") -> Message | Outcome:
        """Handle a request in place of the route's handler."""
        who = (ctx.session.client_id, ctx.session.client_software, ctx.session.user, ctx.connection.advertised.name)
        try:
            of_client = self._of_clients[who]
        except KeyError:
            of_client = self._look_at(who)
        if of_client is None:
            return self._route.serve(ctx, request, services)
        key = None
        if self._is_produce:
            key = _one_partition(request)  # type: ignore[arg-type]  # of that type
            if key in of_client.hit_nothing:
                return self._route.serve(ctx, request, services)
        named = None
        faults: Sequence[Fault] = of_client.of_any
        if of_client.of_names:
            named = self._entities(ctx, request)
            faults = of_client.about(named)
            if not faults and key is not None:
                of_client.remember(key)
        if not faults or (JOURNAL_TOPIC in self._broker.cluster.topics and self._watches(ctx, request)):
            return self._route.serve(ctx, request, services)
        hits = self._hits(ctx, faults, named)
        first = next(hits, None)
        if first is None:
            return self._route.serve(ctx, request, services)
        hits = chain((first,), hits)
        execution = ctx.fault = FaultExecution(
            self._owner, self._broker, services, self._route.serve, ctx, request, hits
        )
        return execution.begin()

    def _hits(self, ctx: RequestContext, faults: Sequence[Fault], named: RequestEntities | None) -> Iterator[RuleHit]:
        for fault in faults:
            try:
                if fault.has_ended or not fault.hits_request(ctx, self._broker, named if fault.match.names else None):
                    hit = None
                else:
                    assert isinstance(fault.action, RequestAction)
                    hit = RuleHit(fault, fault.action, fault.action.draw(fault.random))
            except Exception as error:
                fault.disable(error)
                continue
            if fault.is_over:
                self._owner.take_off_routes(fault)
            if hit is not None:
                self._owner.record_hit(ctx, fault)
                yield hit

    def _watches(self, ctx: RequestContext, request: Message) -> bool:
        """Return whether a request is about the journal's own topic alone. Its readers see faults, and are not hit."""
        partitions = self._entities(ctx, request).partitions
        return bool(partitions) and all(topic == JOURNAL_TOPIC for topic, _ in partitions)

    def _entities(self, ctx: RequestContext, request: Message) -> RequestEntities:
        """Return what a request names, and for a fetch also the partitions of its session."""
        partitions, groups, transactional_ids = self._read(request, self._broker.cluster.topics_by_id)
        if isinstance(request, FetchRequest) and request.session_epoch > 0:
            sessions = self._broker.fetch_sessions_in_use
            if sessions is not None:
                partitions = [*partitions, *sessions.partitions_of(request.session_id)]
        return RequestEntities(partitions, groups, transactional_ids, self._selects_all(request, ctx.version))

    def _look_at(self, who: _Who) -> "_OfClient | None":
        if len(self._of_clients) >= _MOST_REMEMBERED:
            self._of_clients.clear()
        client_id, software, user, listener = who
        client = (client_id, *software, f"User:{user}", listener)
        faults = [fault for fault in self.faults if fault.match.hits_client(client)]
        of_client = self._of_clients[who] = _OfClient(faults) if faults else None
        return of_client


class _OfClient:
    """The rules of a route that may hit one client."""

    __slots__ = ("_named", "_number", "hit_nothing", "of_any", "of_names")

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.of_any = tuple(fault for fault in faults if not fault.match.names)
        self.of_names = [fault for fault in faults if fault.match.names]
        self._number = {fault: number for number, fault in enumerate(faults)}
        self._named: dict[tuple[str, object], tuple[Fault, ...]] = {}
        self.hit_nothing: set[_One | None] = set()  # what requests name that no rule is about

    def about(self, named: RequestEntities) -> Sequence[Fault]:
        """Those that may hit a request that names this, in their order."""
        if named.all_topics:
            return (*self.of_any, *self.of_names) if self.of_any else self.of_names
        keys: list[tuple[str, object]] = [("partition", each) for each in named.partitions]
        keys += [("group", each) for each in named.groups]
        keys += [("transactional_id", each) for each in named.transactional_ids]
        found = {fault: None for key in keys for fault in self._about(key)}
        if not self.of_any and len(found) < 2:
            return tuple(found)
        return sorted((*self.of_any, *found), key=self._number.__getitem__)

    def remember(self, key: _One) -> None:
        """No rule is about requests that name this."""
        if len(self.hit_nothing) >= _MOST_REMEMBERED:
            self.hit_nothing.clear()
        self.hit_nothing.add(key)

    def _about(self, key: tuple[str, object]) -> tuple[Fault, ...]:
        known = self._named.get(key)
        if known is None:
            if len(self._named) >= _MOST_REMEMBERED:
                self._named.clear()
            known = self._named[key] = tuple(fault for fault in self.of_names if _is_about(fault, *key))
        return known


def _is_about(fault: Fault, kind: str, name: object) -> bool:
    """Whether a rule is about what is named. One that is about several kinds is found by the first of them."""
    match = fault.match
    first = match.names[0]
    if kind == "partition":
        assert isinstance(name, tuple)
        return first in ("topic", "partition") and match.hits_partition(*name)
    assert isinstance(name, str)
    return first == kind and (match.hits_group(name) if kind == "group" else match.hits_transactional_id(name))


def _one_partition(request: ProduceRequest) -> _One | None:
    """What it names; None where that is more than one partition."""
    topic_data = request.topic_data
    if len(topic_data) != 1 or len(topic_data[0].partition_data) != 1:
        return None
    topic = topic_data[0]
    return topic.name or topic.topic_id, topic.partition_data[0].index, request.transactional_id
