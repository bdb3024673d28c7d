"""The fold of events into facts, and the judgement of facts by rules.

The facts of a client depend only on its events, those of a group only on the events with its id. So the Spark job,
which groups the events, has the same result (`sluice/spark/lint`).
"""

import gc
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from sluice.journal_events import AnyEvent, ClientEvent, Gap, GroupState, Request, decode_lines

from .clients import ClientKey
from .facts.client_facts import ClientFacts
from .facts.group_facts import GroupFacts
from .facts.topics import Topics
from .findings import Finding, Judged, Undecided, judged
from .registry import all_rules
from .rule import Rule, Scope, Severity

Rules = Sequence[Rule[Any]]


class Result(msgspec.Struct, kw_only=True):
    """What the rules found.

    events: number of events that were read
    lost: number of events that the journal had lost before they were read
    findings: the findings, worst first
    undecided: rules without enough evidence
    """

    events: int
    lost: int
    findings: list[Finding]
    undecided: list[Undecided]


class Fold:
    """The facts of all clients and groups, from events in the order of the journal."""

    def __init__(self) -> None:
        self.clients: dict[ClientKey, ClientFacts] = {}
        self.groups: dict[str, GroupFacts] = {}
        self.events = self.lost = 0

    def take_lines(self, lines: bytes) -> None:
        """Add events as lines of JSON. Raises msgspec.DecodeError."""
        was_enabled = gc.isenabled()
        gc.disable()  # a collection while objects are created takes a third of the time of decoding
        try:
            self.take(decode_lines(lines))
        finally:
            if was_enabled:
                gc.enable()

    def take(self, taken: Iterable[AnyEvent]) -> None:
        """Add events."""
        for event in taken:
            self.events += 1
            if isinstance(event, Request):
                self.take_of_client(event, event.api)
                if event.group_id:
                    self.take_of_group(event, event.api)
            elif isinstance(event, ClientEvent):
                self.take_of_client(event, str(event.__struct_config__.tag))
            elif isinstance(event, GroupState):
                self.take_of_group(event, "group-state")
            elif isinstance(event, Gap):
                self.lost += event.lost

    def take_of_client(self, event: ClientEvent, name: str) -> None:
        """Add an event to the facts of its client; `name` is the API of a request, else the kind."""
        key = ClientKey(event.client_id, event.software_name, event.software_version)
        facts = self.clients.get(key)
        if facts is None:
            facts = self.clients[key] = ClientFacts(key)
        for handle in facts.dispatch[name]:
            handle(event)

    def take_of_group(self, event: Request | GroupState, name: str) -> None:
        """Add an event to the facts of its group."""
        facts = self.groups.get(event.group_id)
        if facts is None:
            facts = self.groups[event.group_id] = GroupFacts(event.group_id)
        facts.take(event, name)

    def judged(self, rules: Rules) -> Iterator[Judged]:
        for client in self.clients.values():
            yield judged_client(client, rules)
        for group in self.groups.values():
            yield judged_group(group, rules)

    def result(self, rules: Rules) -> Result:
        return result(self.judged(rules), rules, self.events, self.lost)


def lint(taken: Iterable[AnyEvent]) -> Result:
    """Judge events by all rules."""
    fold = Fold()
    fold.take(taken)
    return fold.result(list(all_rules().values()))


def judged_client(facts: ClientFacts, rules: Rules) -> Judged:
    return _judged(Scope.CLIENT, facts, str(facts.key), [facts.key], rules)


def judged_group(facts: GroupFacts, rules: Rules) -> Judged:
    return _judged(Scope.GROUP, facts, f"group {facts.group_id}", sorted(facts.clients), rules)


def result(parts: Iterable[Judged], rules: Rules, events_read: int, lost: int) -> Result:
    """Join what was judged, and judge the topics."""
    whole, topics = Judged(), Topics()
    for part in parts:
        whole.findings += part.findings
        whole.undecided += part.undecided
        for name, contributed in part.topics.items():
            topics[name].merge(contributed)
    for name, facts in topics.items():
        of_topic = judged(_of(Scope.TOPIC, rules), facts, f"topic {name}", facts.clients)
        whole.findings += of_topic.findings
        whole.undecided += of_topic.undecided
    return Result(
        events=events_read,
        lost=lost,
        findings=sorted(
            whole.findings, key=lambda each: (list(Severity).index(each.severity), each.rule, each.subject)
        ),
        undecided=sorted(whole.undecided, key=lambda each: (each.rule, each.subject)),
    )


def _of(scope: Scope, rules: Rules) -> Rules:
    return [rule for rule in rules if rule.scope is scope]


def _judged(
    scope: Scope, facts: ClientFacts | GroupFacts, subject: str, clients: list[ClientKey], rules: Rules
) -> Judged:
    found = judged(_of(scope, rules), facts, subject, clients)
    topics = Topics()
    for domain in facts.domains:
        domain.contribute(topics)
    for contributed in topics.values():
        contributed.clients = clients
    found.topics = dict(topics)
    return found
