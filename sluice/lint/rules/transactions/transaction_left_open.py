"""Producers that disconnect in the middle of a transaction."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    transactions = facts.transactions
    names = transactions.left_open
    if names:
        yield Evidence(
            f"transactions that were open when their producer disconnected: {len(names):,}, such as of {names[0]}",
            transactions.left_open_examples,
        )


RULE = Rule(
    id="transaction-left-open",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Transactions that are neither committed nor aborted",
    why="Until the timeout of the transaction, consumers with read_committed read nothing that comes after "
    "its first record.",
    citation=Citation(
        where="Consumer Configs, isolation.level",
        url="https://kafka.apache.org/documentation/#consumerconfigs_isolation.level",
        words="As a result, read_committed consumers will not be able to read up to the high watermark when "
        "there are in flight transactions.",
    ),
    remedy=Remedy(
        java="abortTransaction() when an exception ends the transaction",
        librdkafka="abort_transaction() when an exception ends the transaction",
        aiokafka="async with producer.transaction(), which aborts on an exception",
        franz_go="EndTransaction(ctx, kgo.TryAbort) before Close()",
        kafkajs="transaction.abort() when an exception ends the transaction",
    ),
    silent="If a producer with the same transactional id returns, or the broker closed the connection.",
    check=_check,
)
