"""The fold of events into facts, and the judgement of facts by rules.

The facts of a client depend only on its events, those of a group only on the events with its id. So the Spark job,
which groups the events, has the same result (`sluice/spark/lint`).
"""

import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sluice.journal_events import AnyEvent, ClientEvent, Gap, GroupState, Request
from sluice.lint.facts.subjects import ClientFacts, GroupFacts

from .clients import ClientKey
from .facts.topics import TopicFacts, Topics
from .findings import Client, Judged, Result, judge
from .registry import all_rules
from .rule import Rule, Scope, Severity
from .settings import settings_of

Rules = Sequence[Rule[Any]]
_RANK = {severity: number for number, severity in enumerate(Severity)}


class Fold:
    """The facts of all clients and groups, from events in the order of the journal."""

    def __init__(self) -> None:
        self.clients: dict[tuple[str, str, str], ClientFacts] = {}  # as in ClientKey, which takes longer to make
        self.groups: dict[str, GroupFacts] = {}
        self.events = self.lost = 0

    def take(self, taken: Iterable[AnyEvent], scope: Scope | None = None) -> None:
        """Add events: to the facts of clients and groups, or to those of one scope.

        The events of a client are added together, because its facts are then in the processor's cache.
        """
        of_clients: defaultdict[tuple[str, str, str], list[ClientEvent]] = defaultdict(list)
        of_groups: defaultdict[str, list[Request | GroupState]] = defaultdict(list)
        count, for_clients, for_groups = 0, scope is not Scope.GROUP, scope is not Scope.CLIENT
        for event in taken:
            count += 1
            if isinstance(event, Request):  # first, because most are
                if for_clients:
                    of_clients[event.client_id, event.software_name, event.software_version].append(event)
                if event.group_id and for_groups:
                    of_groups[event.group_id].append(event)
            elif isinstance(event, ClientEvent):
                if for_clients:
                    of_clients[event.client_id, event.software_name, event.software_version].append(event)
            elif isinstance(event, GroupState):
                if for_groups:
                    of_groups[event.group_id].append(event)
            elif isinstance(event, Gap):
                self.lost += event.lost
        self.events += count
        for key, events in of_clients.items():
            client = self.clients.get(key)
            if client is None:
                client = self.clients[key] = ClientFacts(ClientKey(*key))
            client.take(events)
        for group_id, requests in of_groups.items():
            group = self.groups.get(group_id)
            if group is None:
                group = self.groups[group_id] = GroupFacts(group_id)
            group.take(requests)

    def judged(self, rules: Rules) -> Iterator[Judged]:
        for client in self.clients.values():
            yield judge_client(client, rules)
        for group in self.groups.values():
            yield judge_group(group, rules)

    def result(self, rules: Rules) -> Result:
        return join(self.judged(rules), rules, self.events, self.lost)


def fold(batches: Iterable[Iterable[AnyEvent]]) -> Fold:
    """Return the facts of all events, which are decoded in batches while this runs."""
    found = Fold()
    with no_collection():
        for batch in batches:
            found.take(batch)
    return found


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause the garbage collector, which takes a third of the time of decoding; no event is in a cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def lint(events: Iterable[AnyEvent]) -> Result:
    """Judge events by all rules."""
    return fold([events]).result(list(all_rules().values()))


def judge_client(facts: ClientFacts, rules: Rules) -> Judged:
    found = judge(rules, Scope.CLIENT, facts, str(facts.key), [facts.key])
    traffic = facts.traffic
    if traffic.apis:
        found.client = Client(
            key=facts.key,
            requests=traffic.apis.total(),
            began_ns=traffic.first_ns,
            ended_ns=traffic.last_ns,
            settings=settings_of(facts),
        )
    found.topics = _contributed(facts, [facts.key])
    return found


def judge_group(facts: GroupFacts, rules: Rules) -> Judged:
    clients = sorted(facts.clients)
    found = judge(rules, Scope.GROUP, facts, facts.group_id, clients)
    found.topics = _contributed(facts, clients)
    return found


def judge_topics(topics: Topics, rules: Rules) -> Iterator[Judged]:
    for name, facts in topics.items():
        yield judge(rules, Scope.TOPIC, facts, name, facts.clients)


def join(parts: Iterable[Judged], rules: Rules, events: int, lost: int) -> Result:
    """Join what was found about clients and groups, and judge the topics."""
    whole, topics, clients = Judged(), Topics(), dict[ClientKey, Client]()
    for part in parts:
        whole.findings += part.findings
        whole.undecided += part.undecided
        if part.client is not None:
            clients[part.client.key] = part.client
        for name, contributed in part.topics.items():
            topics[name].merge(contributed)
    for of_topic in judge_topics(topics, rules):
        whole.findings += of_topic.findings
        whole.undecided += of_topic.undecided
    return Result(
        events=events,
        lost=lost,
        clients=[clients[key] for key in sorted(clients)],
        findings=sorted(whole.findings, key=lambda each: (_RANK[each.severity], each.rule, each.scope, each.subject)),
        undecided=sorted(whole.undecided, key=lambda each: (each.rule, each.scope, each.subject)),
    )


def _contributed(facts: ClientFacts | GroupFacts, clients: list[ClientKey]) -> dict[str, TopicFacts]:
    topics = Topics()
    for domain in facts.domains:
        domain.contribute(topics)
    for contributed in topics.values():
        contributed.clients = clients
    return dict(topics)
