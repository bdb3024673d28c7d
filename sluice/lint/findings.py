"""What rules and facts say about one client, group or topic."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from .clients import ClientKey
from .facts.topics import TopicFacts
from .rule import Evidence, Rule, Scope, Severity
from .settings import Setting


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule found about one client, group or topic.

    rule: id of the rule
    severity: severity of the rule
    scope: what the rule judges
    subject: the client with its software, or the name of the group or topic
    clients: the client, or up to 16 clients of the group or topic
    evidence: what was observed
    """

    rule: str
    severity: Severity
    scope: Scope
    subject: str
    clients: Sequence[ClientKey]
    evidence: Sequence[Evidence]

    @property
    def identity(self) -> "Identity":
        """What stays the same when the version of the client's software changes."""
        if self.scope is not Scope.CLIENT:
            return Identity(self.rule, self.scope, self.subject, "")
        (client,) = self.clients
        return Identity(self.rule, self.scope, client.client_id, client.software_name)


class Identity(NamedTuple):
    rule: str
    scope: str
    subject: str
    software: str


class Undecided(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that lacks evidence about a client, group or topic.

    record: what to record so that the rule decides
    """

    rule: str
    scope: Scope
    subject: str
    clients: Sequence[ClientKey]
    record: str


class Client(msgspec.Struct, kw_only=True):
    """A client in the journal.

    requests: number of its requests
    began_ns: when its first request was received
    ended_ns: time of its last request
    settings: what its requests show of its settings
    """

    key: ClientKey
    requests: int
    began_ns: int
    ended_ns: int
    settings: list[Setting]


class Result(msgspec.Struct, kw_only=True):
    """What was found in a journal.

    events: number of events that were read
    lost: number of events that the journal had lost before they were read
    clients: the clients, in alphabetical order
    findings: what the rules found, worst first
    undecided: rules without enough evidence
    """

    events: int
    lost: int
    clients: list[Client]
    findings: list[Finding]
    undecided: list[Undecided]


class Judged(msgspec.Struct, kw_only=True):
    """What was found about one client, group or topic, and what a client or group contributes to topics.

    client: the client; null for a group or topic
    """

    client: Client | None = None
    findings: list[Finding] = []
    undecided: list[Undecided] = []
    topics: dict[str, TopicFacts] = {}


def judge(
    rules: Iterable[Rule[Any]], scope: Scope, facts: object, subject: str, clients: Sequence[ClientKey]
) -> Judged:
    """Apply the rules of this scope."""
    found = Judged()
    for rule in rules:
        if rule.scope is not scope:
            continue
        evidence: list[Evidence] = []
        for each in rule.check(facts):
            if isinstance(each, Evidence):
                evidence.append(each)
            else:
                undecided = Undecided(rule=rule.id, scope=scope, subject=subject, clients=clients, record=each.record)
                found.undecided.append(undecided)
        if evidence:
            finding = Finding(
                rule=rule.id, severity=rule.severity, scope=scope, subject=subject, clients=clients, evidence=evidence
            )
            found.findings.append(finding)
    return found
