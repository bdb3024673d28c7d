"""Consumers that commit after each record."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_MOST = 0.9


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    single = facts.committing.single
    commits = single.count + facts.committing.several
    if single.fastest_ns and single.count >= _MOST * commits:
        yield Evidence(
            f"{single.count:,} of {commits:,} commits are for one record, {single.in_words}", single.examples
        )


RULE = Rule(
    id="commit-per-record",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="A commit for each record",
    why="Each commit is a write to the replicated topic __consumer_offsets, and a synchronous one stops the "
    "consumer for a round trip. The rate of commits, not that of records, becomes the limit.",
    citation=Citation(
        where="KafkaConsumer, commitSync",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/KafkaConsumer.html#commitSync()",
        words="This is a synchronous commit and will block until either the commit succeeds, an unrecoverable "
        "error is encountered (in which case it is thrown to the caller), or the passed timeout expires.",
    ),
    remedy=Remedy(
        java="commitSync() once per poll(), or enable.auto.commit=true with auto.commit.interval.ms=5000",
        librdkafka="enable.auto.commit=true with auto.commit.interval.ms=5000, and enable.auto.offset.store=false "
        "with a call of store_offsets per record",
        aiokafka="commit() once per getmany(), or enable_auto_commit=True with auto_commit_interval_ms=5000",
        franz_go="kgo.AutoCommitInterval(5 * time.Second) with kgo.AutoCommitMarks() and MarkCommitRecords per record",
        kafkajs="autoCommitInterval: 5000 or autoCommitThreshold: 100",
    ),
    silent="If fewer than 50 such commits come in 10 s: at a low rate, a commit per record is a choice.",
    check=_check,
)
