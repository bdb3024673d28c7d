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
        where="Transactions in Apache Kafka (Confluent)",
        url="https://www.confluent.io/blog/transactions-apache-kafka/",
        words="As we can see the overhead is independent of the number of messages written as part of a "
        "transaction. So the key to having higher throughput is to include a larger number of messages "
        "per transaction.",
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
