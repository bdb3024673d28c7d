"""Consumers that commit offsets which they have not read yet."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    for (group_id, topic, partition), ahead in facts.committing.ahead.items():
        yield Evidence(
            f"group {group_id} committed offset {ahead.committed:,} of {topic}-{partition}, but two fetches later the "
            f"client had not fetched beyond {ahead.fetched:,}",
            facts.committing.ahead_examples,
        )


RULE = Rule(
    id="commit-ahead",
    scope=Scope.CLIENT,
    severity=Severity.ERROR,
    title="Commits ahead of what was fetched",
    why="After a restart or a rebalance, the group continues at the committed offset. The records before it "
    "are never read.",
    citation=Citation(
        where="KafkaConsumer, Manual Offset Control",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/KafkaConsumer.html",
        words="If you fail to do either of these, it is possible for the committed offset to get ahead of the "
        "consumed position, which results in missing records.",
    ),
    remedy=Remedy(
        java="commitSync(Map.of(partition, new OffsetAndMetadata(record.offset() + 1)))",
        librdkafka="commit(message=message), or store_offsets(message=message)",
        aiokafka="commit({partition: record.offset + 1})",
        franz_go="CommitRecords(ctx, records...)",
        kafkajs="commitOffsets([{topic, partition, offset: (Number(message.offset) + 1).toString()}])",
    ),
    silent="If the client fetches fewer than two times after the commit, or commits for several groups.",
    check=_check,
)
