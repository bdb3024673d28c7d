"""Consumers that read many records before they commit."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# Six times the default of auto.commit.interval.ms.
_SECONDS = 30.0
_NS_PER_S = 1e9


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    found = [(key, each.longest) for key, each in facts.committing.offsets.items() if each.longest.ns]
    if not found:
        return
    (group_id, topic, partition), longest = max(found, key=lambda each: each[1].ns)
    if longest.ns >= _SECONDS * _NS_PER_S:
        yield Evidence(
            f"group {group_id} read {longest.records:,} records of {topic}-{partition} in "
            f"{longest.ns / _NS_PER_S:.0f} s before it committed them"
        )


RULE = Rule(
    id="rare-commits",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Long times between commits",
    why="After a crash or a rebalance, the next consumer reads all records since the last commit again.",
    citation=Citation(
        where="KafkaConsumer, Manual Offset Control",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/KafkaConsumer.html",
        words="In this case the process that took over consumption would consume from last committed offset and"
        " would repeat the insert of the last batch of data.",
    ),
    remedy=Remedy(
        java="auto.commit.interval.ms=5000",
        librdkafka="auto.commit.interval.ms=5000",
        aiokafka="auto_commit_interval_ms=5000",
        franz_go="kgo.AutoCommitInterval(5 * time.Second)",
        kafkajs="autoCommitInterval: 5000",
    ),
    silent="If less than 30 s pass, or fewer than 1,000 records are read, between two commits; while a client "
    "has fetched them before the first one.",
    check=_check,
)
