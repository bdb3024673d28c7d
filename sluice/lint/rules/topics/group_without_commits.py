"""Groups that read a topic and never commit."""

from collections.abc import Iterator

from sluice.lint.facts.topics import TopicFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# Three times the default of auto.commit.interval.ms.
_MEMBER_NS = 15_000_000_000


def _check(facts: TopicFacts) -> Iterator[Evidence]:
    for group_id in sorted(facts.groups_without_commits):
        first_ns, last_ns = facts.reading_groups.get(group_id, (0, 0))
        if last_ns - first_ns >= _MEMBER_NS:
            yield Evidence(
                f"group {group_id} committed no offset in {(last_ns - first_ns) / 1e9:.0f} s, while its members read "
                f"the topic"
            )


RULE = Rule(
    id="group-without-commits",
    scope=Scope.TOPIC,
    severity=Severity.WARNING,
    title="A group that commits no offsets",
    why="After a restart or a rebalance, its members start where auto.offset.reset says: they read everything"
    " again, or skip records. Ignore this if the offsets are stored elsewhere.",
    citation=Citation(
        where="KafkaConsumer, Offsets and Consumer Position",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/KafkaConsumer.html",
        words="The committed position is the last offset that has been stored securely. Should the process fail"
        " and restart, this is the offset that the consumer will recover to.",
    ),
    remedy=Remedy(
        java="enable.auto.commit=true, or commitSync()",
        librdkafka="enable.auto.commit=true, or commit()",
        aiokafka="enable_auto_commit=True, or commit()",
        franz_go="no kgo.DisableAutoCommit(), or CommitUncommittedOffsets",
        kafkajs="autoCommit: true, or commitOffsets",
    ),
    silent="If the members were in the group for less than 15 s, or their client joined several groups.",
    check=_check,
)
