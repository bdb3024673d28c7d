"""Members whose session timeout the broker rejects."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    notes = facts.membership.invalid_session_timeouts
    if notes.count:
        yield Evidence(notes.in_words, notes.examples)


RULE = Rule(
    id="session-timeout-rejected",
    scope=Scope.GROUP,
    severity=Severity.ERROR,
    title="A session timeout that the broker does not allow",
    why="The member cannot join the group, so it reads nothing.",
    citation=Citation(
        where="Consumer Configs, session.timeout.ms",
        url="https://kafka.apache.org/documentation/#consumerconfigs_session.timeout.ms",
        words="Note that the value must be in the allowable range as configured in the broker configuration by "
        "group.min.session.timeout.ms and group.max.session.timeout.ms.",
    ),
    remedy=Remedy(
        java="session.timeout.ms=45000",
        librdkafka="session.timeout.ms=45000",
        aiokafka="session_timeout_ms=45000",
        franz_go="kgo.SessionTimeout(45 * time.Second)",
        kafkajs="sessionTimeout: 30000",
    ),
    silent="If a fault rule injected the error.",
    check=_check,
)
