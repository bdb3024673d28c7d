"""Transactions that end shortly before their timeout."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.facts.transactions import NEAR_SHARE
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    transactions = facts.transactions
    if transactions.near_timeout:
        yield Evidence(
            f"transactions that took at least {NEAR_SHARE:.0%} of their timeout: {transactions.near_timeout:,}, "
            f"the longest {transactions.longest_share:.0%}",
            transactions.near_examples,
        )


RULE = Rule(
    id="transaction-near-timeout",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Transactions that take most of their timeout",
    why="When the application is a little slower, the broker aborts the transaction, and all its work is "
    "lost. Consumers with read_committed wait for its end.",
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
    silent="If transactions take less than 80 % of their timeout, or the journal has no InitProducerId of the "
    "producer.",
    check=_check,
)
