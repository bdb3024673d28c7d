"""Members that the broker removes while they are alive, because they send no heartbeats."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    notes = facts.membership.session_expired
    if notes.count:
        yield Evidence(notes.in_words, notes.examples)


RULE = Rule(
    id="session-expired",
    scope=Scope.GROUP,
    severity=Severity.WARNING,
    title="Members that miss their session timeout",
    why="The member still processes records that the group has given to another member. Often the application"
    " blocks the thread or event loop that sends heartbeats.",
    citation=Citation(
        where="Consumer Configs, session.timeout.ms",
        url="https://kafka.apache.org/documentation/#consumerconfigs_session.timeout.ms",
        words="If no heartbeats are received by the broker before the expiration of this session timeout, then "
        "the broker will remove this client from the group and initiate a rebalance.",
    ),
    remedy=Remedy(
        java="session.timeout.ms=45000",
        librdkafka="session.timeout.ms=45000",
        aiokafka="session_timeout_ms=45000; run blocking code with asyncio.to_thread",
        franz_go="kgo.SessionTimeout(45 * time.Second)",
        kafkajs="sessionTimeout: 30000, and heartbeat() while processing",
    ),
    silent="If the member sends no request afterwards (closed-without-leaving).",
    check=_check,
)
