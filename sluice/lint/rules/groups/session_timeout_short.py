"""Members with a session timeout below the broker's usual minimum."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# Kafka's default of group.min.session.timeout.ms.
_SHORTEST_MS = 6000


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    short = [each for each in facts.membership.members.values() if 0 < each.session_timeout_ms < _SHORTEST_MS]
    if short:
        member = min(short, key=lambda each: each.session_timeout_ms)
        others = f"; members with less than 6 s: {len(short):,}" if len(short) > 1 else ""
        yield Evidence(f"client {member.client_id} has a session timeout of {member.session_timeout_ms:,} ms{others}")


RULE = Rule(
    id="session-timeout-short",
    scope=Scope.GROUP,
    severity=Severity.WARNING,
    title="A session timeout below 6 s",
    why="A garbage collection, a slow network or a busy event loop of a few seconds removes the member from "
    "its group. Brokers with their default settings reject such a timeout.",
    citation=Citation(
        where="Broker Configs, group.min.session.timeout.ms",
        url="https://kafka.apache.org/documentation/#brokerconfigs_group.min.session.timeout.ms",
        words="Shorter timeouts result in quicker failure detection at the cost of more frequent consumer "
        "heartbeating, which can overwhelm broker resources.",
    ),
    remedy=Remedy(
        java="session.timeout.ms=45000",
        librdkafka="session.timeout.ms=45000",
        aiokafka="session_timeout_ms=45000",
        franz_go="kgo.SessionTimeout(45 * time.Second)",
        kafkajs="sessionTimeout: 30000",
    ),
    silent="If the timeout is at least 6 s, or was rejected (session-timeout-rejected).",
    check=_check,
)
