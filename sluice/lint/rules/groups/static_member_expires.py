"""Static members that return after their session timeout."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    notes = facts.membership.returned_late
    if notes.count:
        yield Evidence(notes.in_words, notes.examples)


RULE = Rule(
    id="static-member-expires",
    scope=Scope.GROUP,
    severity=Severity.WARNING,
    title="Static members with a session timeout shorter than their restarts",
    why="The broker had given the partitions to other members, and now they move back: two rebalances that "
    "static membership is there to avoid.",
    citation=Citation(
        where="Consumer Configs, group.instance.id",
        url="https://kafka.apache.org/documentation/#consumerconfigs_group.instance.id",
        words="This can be used in combination with a larger session timeout to avoid group rebalances caused "
        "by transient unavailability (e.g. process restarts).",
    ),
    remedy=Remedy(
        java="session.timeout.ms above the time of a restart, such as 120000",
        librdkafka="session.timeout.ms above the time of a restart, such as 120000",
        aiokafka="session_timeout_ms above the time of a restart, such as 120000",
        franz_go="kgo.SessionTimeout above the time of a restart, such as 2 * time.Minute",
        kafkajs="",
    ),
    silent="If the member was away for more than 5 minutes, or the group had no other member.",
    check=_check,
)
