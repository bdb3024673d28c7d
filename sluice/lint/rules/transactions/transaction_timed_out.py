"""Transactions that the broker aborts because of their timeout."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    transactions = facts.transactions
    if transactions.timed_out:
        yield Evidence(
            f"requests that failed after the timeout of their transaction: {transactions.timed_out:,}",
            transactions.timed_out_examples,
        )


RULE = Rule(
    id="transaction-timed-out",
    scope=Scope.CLIENT,
    severity=Severity.ERROR,
    title="Transactions that exceed their timeout",
    why="The broker has aborted the transaction and fenced the producer, which fails with its next request. "
    "Nothing of the transaction is visible to consumers with read_committed.",
    citation=Citation(
        where="Producer Configs, transaction.timeout.ms",
        url="https://kafka.apache.org/documentation/#producerconfigs_transaction.timeout.ms",
        words="The maximum amount of time in milliseconds that a transaction will remain open before the "
        "coordinator proactively aborts it.",
    ),
    remedy=Remedy(
        java="larger transaction.timeout.ms, or shorter transactions",
        librdkafka="larger transaction.timeout.ms, or shorter transactions",
        aiokafka="larger transaction_timeout_ms, or shorter transactions",
        franz_go="larger kgo.TransactionTimeout, or shorter transactions",
        kafkajs="larger transactionTimeout, or shorter transactions",
    ),
    silent="If the producer sends no request after the timeout, or the journal has no InitProducerId of the producer.",
    check=_check,
)
