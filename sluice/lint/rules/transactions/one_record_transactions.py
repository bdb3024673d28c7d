"""Producers with one record per transaction."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_MOST = 0.9


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    single = facts.transactions.single
    total = single.count + facts.transactions.several
    if single.fastest_ns and single.count >= _MOST * total:
        yield Evidence(
            f"{single.count:,} of {total:,} transactions have at most one record, {single.in_words}", single.examples
        )


RULE = Rule(
    id="one-record-transactions",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Transactions with one record",
    why="A transaction costs several requests, writes to the transaction log, and a marker in each partition,"
    " whatever it contains. One record per transaction is mostly overhead.",
    citation=Citation(
        where="KafkaProducer",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/producer/KafkaProducer.html",
        words="The example below illustrates how the new APIs are meant to be used. It is similar to the example "
        "above, except that all 100 messages are part of a single transaction.",
    ),
    remedy=Remedy(
        java="several send() per beginTransaction() and commitTransaction(), such as one transaction per "
        "poll() or per 100 ms",
        librdkafka="several produce() per begin_transaction() and commit_transaction()",
        aiokafka="several send() per transaction()",
        franz_go="several Produce per BeginTransaction and EndTransaction",
        kafkajs="several send per transaction()",
    ),
    silent="If fewer than 20 such transactions come in 10 s.",
    check=_check,
)
