"""Members that stop without leaving their group."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_AGAIN = 2


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    silent = facts.membership.silent_members()
    if len(silent) >= _AGAIN and len(silent) > facts.membership.members_that_left():
        text = ", ".join(f"client {each.client_id} after {each.session_timeout_ms / 1e3:g} s" for each in silent[:5])
        yield Evidence(
            f"the session timeout of {len(silent):,} members passed without a LeaveGroup: {text}",
            facts.membership.expired_examples,
        )


RULE = Rule(
    id="closed-without-leaving",
    scope=Scope.GROUP,
    severity=Severity.WARNING,
    title="Consumers that are not closed",
    why="The group keeps the partitions of such a member for the whole session timeout. Meanwhile their "
    "records are not read, and new members wait.",
    citation=Citation(
        where="KafkaConsumer, Detecting Consumer Failures",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/KafkaConsumer.html",
        words="If the consumer crashes or is unable to send heartbeats for a duration of session.timeout.ms, "
        "then the consumer will be considered dead and its partitions will be reassigned.",
    ),
    remedy=Remedy(
        java="consumer.close() in a finally block, with wakeup() on shutdown",
        librdkafka="consumer.close() in a finally block",
        aiokafka="await consumer.stop() in a finally block",
        franz_go="client.Close(), or client.LeaveGroup()",
        kafkajs="await consumer.disconnect() on SIGTERM",
    ),
    silent="If it happened once, which may be a crash, or most members leave; for static members; if the journal ends "
    "before the session timeout.",
    check=_check,
)
