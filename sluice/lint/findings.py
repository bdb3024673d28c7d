"""Findings: what rules report about a client, a group or a topic."""

from collections.abc import Iterable, Sequence

import msgspec

from .clients import ClientKey
from .facts.topics import TopicFacts
from .rule import Evidence, Rule, Severity


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule reports about one client, group or topic.

    rule: id of the rule
    severity: severity of the rule
    subject: what the rule judges: the client with its software, `group GROUP` or `topic TOPIC`
    clients: the client, or up to 16 clients of the group or topic
    evidence: what was observed
    """

    rule: str
    severity: Severity
    subject: str
    clients: Sequence[ClientKey]
    evidence: Sequence[Evidence]


class Undecided(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that lacks evidence about a client, group or topic.

    record: what to record so that the rule decides
    """

    rule: str
    subject: str
    record: str


class Judged(msgspec.Struct, kw_only=True):
    """The findings about one client or group, and what it contributes to the facts of topics."""

    findings: list[Finding] = []
    undecided: list[Undecided] = []
    topics: dict[str, TopicFacts] = {}


def judged(rules: Iterable[Rule], facts: object, subject: str, clients: Sequence[ClientKey]) -> Judged:  # type: ignore[type-arg]  # of any scope
    """Apply the rules, which must have the scope of the facts."""
    found = Judged()
    for rule in rules:
        evidence: list[Evidence] = []
        for each in rule.check(facts):
            if isinstance(each, Evidence):
                evidence.append(each)
            else:
                found.undecided.append(Undecided(rule=rule.id, subject=subject, record=each.record))
        if evidence:
            finding = Finding(rule=rule.id, severity=rule.severity, subject=subject, clients=clients, evidence=evidence)
            found.findings.append(finding)
    return found
