"""Consumers that read records of aborted or open transactions."""

from collections.abc import Iterator

from sluice.lint.facts.topics import TopicFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: TopicFacts) -> Iterator[Evidence]:
    transactional = sum(each.transactional for each in facts.produced.values())
    if transactional and facts.uncommitted_readers:
        readers = ", ".join(str(each) for each in facts.uncommitted_readers)
        yield Evidence(
            f"{facts.reads_uncommitted:,} responses with records to readers with read_uncommitted ({readers}); "
            f"{transactional:,} transactional batches were produced"
        )


RULE = Rule(
    id="read-uncommitted",
    scope=Scope.TOPIC,
    severity=Severity.WARNING,
    title="Readers with read_uncommitted of a topic with transactions",
    why="Such a reader also receives records of transactions that are aborted, so the producers' transactions"
    " do not protect it. It is the default of most clients.",
    citation=Citation(
        where="KafkaProducer",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/producer/KafkaProducer.html",
        words="Finally, in order for transactional guarantees to be realized from end-to-end, the consumers "
        "must be configured to read only committed messages as well.",
    ),
    remedy=Remedy(
        java="isolation.level=read_committed",
        librdkafka="isolation.level=read_committed",
        aiokafka="isolation_level='read_committed'",
        franz_go="kgo.FetchIsolationLevel(kgo.ReadCommitted())",
        kafkajs="readUncommitted: false",
    ),
    silent="If no transactional batch was produced to the topic in the journal.",
    check=_check,
)
