"""Producers that fence each other, again and again."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    fenced = facts.transactions.fenced
    if fenced.fastest_ns:
        yield Evidence(
            f"producers were fenced {fenced.count:,} times by a newer one with their transactional id, "
            f"{fenced.in_words}",
            fenced.examples,
        )


RULE = Rule(
    id="transactional-id-shared",
    scope=Scope.CLIENT,
    severity=Severity.ERROR,
    title="A transactional.id that several producers use",
    why="The broker accepts only the latest producer with a transactional id. When several instances use one "
    "id, each stops the one before, and transactions are aborted.",
    citation=Citation(
        where="KafkaProducer",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/producer/KafkaProducer.html",
        words="As such, it should be unique to each producer instance running within a partitioned application.",
    ),
    remedy=Remedy(
        java="a transactional.id per instance, such as one with the number of its shard",
        librdkafka="a transactional.id per instance, such as one with the number of its shard",
        aiokafka="a transactional_id per instance, such as one with the number of its shard",
        franz_go="a kgo.TransactionalID per instance, such as one with the number of its shard",
        kafkajs="a transactionalId per instance, such as one with the number of its shard",
    ),
    silent="If it happened once in 5 minutes, as it may when an instance is replaced; if a fault rule injected the "
    "error.",
    check=_check,
)
