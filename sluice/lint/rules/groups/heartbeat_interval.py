"""Members with a heartbeat interval above a third of their session timeout."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_INTERVALS = 3
# A quantile of a Distribution is up to 1/8 too high.
_CERTAIN = 8 / 9
_MOST_MEMBERS = 5


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    found = 0
    for member in facts.membership.members.values():
        interval_ms = member.heartbeat_ms.quantile(0.25)
        is_seen = member.heartbeat_ms.count >= _INTERVALS and member.session_timeout_ms > 0
        if is_seen and interval_ms * _CERTAIN > member.session_timeout_ms / 3 and found < _MOST_MEMBERS:
            found += 1
            yield Evidence(
                f"client {member.client_id} sends a heartbeat every {interval_ms:,} ms, with a session timeout of "
                f"{member.session_timeout_ms:,} ms"
            )


RULE = Rule(
    id="heartbeat-interval",
    scope=Scope.GROUP,
    severity=Severity.WARNING,
    title="Heartbeats too far apart for the session timeout",
    why="One or two late heartbeats are enough for the broker to remove the member, and the group rebalances.",
    citation=Citation(
        where="Consumer Configs, heartbeat.interval.ms",
        url="https://kafka.apache.org/documentation/#consumerconfigs_heartbeat.interval.ms",
        words="the value must be set lower than session.timeout.ms, but typically should be set no higher than "
        "1/3 of that value",
    ),
    remedy=Remedy(
        java="heartbeat.interval.ms=3000, session.timeout.ms=45000",
        librdkafka="heartbeat.interval.ms=3000, session.timeout.ms=45000",
        aiokafka="heartbeat_interval_ms=3000, session_timeout_ms=45000",
        franz_go="kgo.HeartbeatInterval(3 * time.Second), kgo.SessionTimeout(45 * time.Second)",
        kafkajs="heartbeatInterval: 3000, sessionTimeout: 30000",
    ),
    silent="If a member sent fewer than four heartbeats, or uses group.protocol=consumer, where the broker sets "
    "the interval.",
    check=_check,
)
