"""The rules for requests of one API and version on one broker, indexed so that rules that cannot match cost nothing.

A route with rules has `RouteFaults.handle` in place of its handler. Rules that may hit a client are cached by client
id, software, principal and listener. Of those, the ones with conditions on topics, partitions, groups and transactional
ids are cached per name. For a Produce request of one partition, one key covers all names.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from sluice.broker.broker import Broker
from sluice.broker.exchange.route import Route
from sluice.broker.exchange.routes import Routes
from sluice.broker.faults.fault import Fault, RuleOwner
from sluice.broker.metadata.topic import JOURNAL_TOPIC
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.protocol.apis import ApiKey
from sluice.protocol.apis.fetch import FetchRequest
from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.entities import RequestEntities, all_topics_selector, reader_of
from sluice.protocol.message import Message

from .fault_execution import FaultExecution, RequestAction, RuleHit

# Size of each cache: clients, and names per client. A full cache is cleared.
_MOST_CACHED = 4096
# The names in a Produce request with one partition: topic name or id, partition, transactional id.
_ProduceKey = tuple[str | bytes, int, str | None]
_ClientKey = tuple[str, tuple[str, str], str, str]


class RouteFaults:
    """The rules of one route, in the order of addition."""

    def __init__(self, owner: RuleOwner, broker: Broker, routes: Routes, route: Route) -> None:
        self.faults: dict[Fault, None] = {}
        self._owner = owner
        self._broker = broker
        self._routes = routes
        self._route = route
        self._is_produce = route.api_key == ApiKey.PRODUCE
        self._read = reader_of(route.api_key)
        self._selects_all = all_topics_selector(route.api_key)
        self._by_client: dict[_ClientKey, _ClientRules | None] = {}

    def add(self, fault: Fault) -> None:
        self.faults[fault] = None
        self._by_client.clear()

    def discard(self, fault: Fault) -> None:
        if fault in self.faults:
            del self.faults[fault]
            self._by_client.clear()

    def handle(self, ctx: RequestContext, request: Message, broker: Broker) -> Message | Outcome:
        session = ctx.session
        client_key = (session.client_id, session.client_software, session.user, ctx.session.connection.advertised.name)
        try:
            rules = self._by_client[client_key]
        except KeyError:
            rules = self._rules_of(client_key)
        if rules is None:
            return self._route.handler(ctx, request, broker)
        key = None
        if self._is_produce:
            key = _one_partition(request)  # type: ignore[arg-type]  # of that type
            if key in rules.unmatched:
                return self._route.handler(ctx, request, broker)
        named = None
        faults: Sequence[Fault] = rules.unnamed
        if rules.with_names:
            named = self._entities(ctx, request)
            faults = rules.matching(named)
            if not faults and key is not None:
                rules.add_unmatched(key)
        if not faults or (JOURNAL_TOPIC in self._broker.metadata.topics and self._reads_journal(ctx, request)):
            return self._route.handler(ctx, request, broker)
        hits = self._hits(ctx, faults, named)
        first = next(hits, None)
        if first is None:
            return self._route.handler(ctx, request, broker)
        hits = chain((first,), hits)
        execution = ctx.fault = FaultExecution(
            self._owner, self._broker, self._routes, self._route.handler, ctx, request, hits
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

    def _reads_journal(self, ctx: RequestContext, request: Message) -> bool:
        # Readers of the journal's topic observe faults and are not hit.
        partitions = self._entities(ctx, request).partitions
        return bool(partitions) and all(topic == JOURNAL_TOPIC for topic, _ in partitions)

    def _entities(self, ctx: RequestContext, request: Message) -> RequestEntities:
        # For Fetch, this includes the partitions of its session.
        partitions, groups, transactional_ids = self._read(request, self._broker.metadata.topics_by_id)
        if isinstance(request, FetchRequest) and request.session_epoch > 0:
            partitions = [*partitions, *self._broker.fetch_sessions.partitions_of(request.session_id)]
        return RequestEntities(partitions, groups, transactional_ids, self._selects_all(request, ctx.version))

    def _rules_of(self, client_key: _ClientKey) -> "_ClientRules | None":
        if len(self._by_client) >= _MOST_CACHED:
            self._by_client.clear()
        client_id, software, user, listener = client_key
        client = (client_id, *software, f"User:{user}", listener)
        faults = [fault for fault in self.faults if fault.match.hits_client(client)]
        rules = self._by_client[client_key] = _ClientRules(faults) if faults else None
        return rules


class _ClientRules:
    def __init__(self, faults: Sequence[Fault]) -> None:
        self.unnamed = tuple(fault for fault in faults if not fault.match.names)
        self.with_names = [fault for fault in faults if fault.match.names]
        self._number = {fault: number for number, fault in enumerate(faults)}
        self._named: dict[tuple[str, object], tuple[Fault, ...]] = {}
        self.unmatched: set[_ProduceKey | None] = set()  # names that no rule matches

    def matching(self, named: RequestEntities) -> Sequence[Fault]:
        if named.all_topics:
            return (*self.unnamed, *self.with_names) if self.unnamed else self.with_names
        keys: list[tuple[str, object]] = [("partition", each) for each in named.partitions]
        keys += [("group", each) for each in named.groups]
        keys += [("transactional_id", each) for each in named.transactional_ids]
        found = {fault: None for key in keys for fault in self._by_name(key)}
        if not self.unnamed and len(found) < 2:
            return tuple(found)
        return sorted((*self.unnamed, *found), key=self._number.__getitem__)

    def add_unmatched(self, key: _ProduceKey) -> None:
        if len(self.unmatched) >= _MOST_CACHED:
            self.unmatched.clear()
        self.unmatched.add(key)

    def _by_name(self, key: tuple[str, object]) -> tuple[Fault, ...]:
        known = self._named.get(key)
        if known is None:
            if len(self._named) >= _MOST_CACHED:
                self._named.clear()
            known = self._named[key] = tuple(fault for fault in self.with_names if _matches_name(fault, *key))
        return known


def _matches_name(fault: Fault, kind: str, name: object) -> bool:
    # Rules with conditions on several kinds are found by their first.
    match = fault.match
    first = match.names[0]
    if kind == "partition":
        assert isinstance(name, tuple)
        return first in ("topic", "partition") and match.hits_partition(*name)
    assert isinstance(name, str)
    return first == kind and (match.hits_group(name) if kind == "group" else match.hits_transactional_id(name))


def _one_partition(request: ProduceRequest) -> _ProduceKey | None:
    topic_data = request.topic_data
    if len(topic_data) != 1 or len(topic_data[0].partition_data) != 1:
        return None
    topic = topic_data[0]
    return topic.name or topic.topic_id, topic.partition_data[0].index, request.transactional_id
