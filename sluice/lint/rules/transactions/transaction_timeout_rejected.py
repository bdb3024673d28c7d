"""Producers whose transaction timeout is above the broker's maximum."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    transactions = facts.transactions
    if transactions.invalid_timeouts:
        timeouts = ", ".join(f"{each:,} ms" for each in sorted(transactions.invalid_timeouts))
        yield Evidence(
            f"InitProducerId failed with INVALID_TRANSACTION_TIMEOUT for {timeouts}", transactions.timeout_examples
        )


RULE = Rule(
    id="transaction-timeout-rejected",
    scope=Scope.CLIENT,
    severity=Severity.ERROR,
    title="A transaction timeout that the broker does not allow",
    why="The producer cannot start.",
    citation=Citation(
        where="Producer Configs, transaction.timeout.ms",
        url="https://kafka.apache.org/documentation/#producerconfigs_transaction.timeout.ms",
        words="If this value is larger than the transaction.max.timeout.ms setting in the broker, the request "
        "will fail with a InvalidTxnTimeoutException error.",
    ),
    remedy=Remedy(
        java="transaction.timeout.ms=60000",
        librdkafka="transaction.timeout.ms=60000",
        aiokafka="transaction_timeout_ms=60000",
        franz_go="kgo.TransactionTimeout(40 * time.Second)",
        kafkajs="transactionTimeout: 60000",
    ),
    silent="If a fault rule injected the error.",
    check=_check,
)
