"""Consumers that commit an offset below the one that they committed before."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    committing = facts.committing
    if committing.backward:
        yield Evidence(
            f"commits of an offset below the one before, which the client did not fetch again: {committing.backward:,}",
            committing.backward_examples,
        )


RULE = Rule(
    id="commit-goes-back",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Commits that go back",
    why="A commit has overtaken a newer one, as happens when several threads or tasks commit, or when failed "
    "commits are retried. After a restart, records that were processed are read again.",
    citation=Citation(
        where="KafkaConsumer, Manual Offset Control",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/KafkaConsumer.html",
        words="The committed offset should always be the offset of the next message that your application will read.",
    ),
    remedy=Remedy(
        java="commitSync() from the polling thread only; do not retry in the callback of commitAsync()",
        librdkafka="store_offsets in the order of the offsets, with enable.auto.offset.store=false",
        aiokafka="commit() from one task only, with the lowest offset that is not processed",
        franz_go="kgo.AutoCommitMarks() with MarkCommitRecords, which never go back",
        kafkajs="resolveOffset in the order of the offsets, with eachBatchAutoResolve: false",
    ),
    silent="If the client fetched from the lower offset in between (seek), commits for several groups, or does "
    "not fetch the partition.",
    check=_check,
)
