"""Rules about transactions."""

from collections.abc import Iterator

from sluice.lint.facts.subjects import ClientFacts
from sluice.lint.facts.transactions import NEAR_SHARE
from sluice.lint.rule import Evidence, Remedy, Severity, cited, properties, rule

_MOST = 0.9

_LONGER_TIMEOUT = properties(
    "larger transaction.timeout.ms, or shorter transactions",
    franz_go="larger kgo.TransactionTimeout, or shorter transactions",
    kafkajs="larger transactionTimeout, or shorter transactions",
)


@rule(
    Severity.WARNING,
    title="Transactions with one record",
    why="A transaction costs several requests, writes to the transaction log, and a marker in each partition, whatever "
    "it contains. One record per transaction is mostly overhead.",
    citation=cited(
        "KafkaProducer",
        "The example below illustrates how the new APIs are meant to be used. It is similar to the example above, "
        "except that all 100 messages are part of a single transaction.",
    ),
    remedy=Remedy(
        java="several send() per beginTransaction() and commitTransaction(), such as one transaction per poll() or per "
        "100 ms",
        librdkafka="several produce() per begin_transaction() and commit_transaction()",
        aiokafka="several send() per transaction()",
        franz_go="several Produce per BeginTransaction and EndTransaction",
        kafkajs="several send per transaction()",
    ),
    silent="If fewer than 20 such transactions come in 10 s.",
)
def one_record_transactions(facts: ClientFacts) -> Iterator[Evidence]:
    single = facts.transactions.single
    total = single.count + facts.transactions.several
    if single.fastest_ns and single.count >= _MOST * total:
        yield Evidence(
            f"{single.count:,} of {total:,} transactions have at most one record, {single.in_words}", single.examples
        )


@rule(
    Severity.WARNING,
    title="Transactions that are neither committed nor aborted",
    why="Until the timeout of the transaction, consumers with read_committed read nothing that comes after its first "
    "record.",
    citation=cited(
        "Consumer Configs, isolation.level",
        "As a result, read_committed consumers will not be able to read up to the high watermark when there are in "
        "flight transactions.",
    ),
    remedy=Remedy(
        java="abortTransaction() when an exception ends the transaction",
        librdkafka="abort_transaction() when an exception ends the transaction",
        aiokafka="async with producer.transaction(), which aborts on an exception",
        franz_go="EndTransaction(ctx, kgo.TryAbort) before Close()",
        kafkajs="transaction.abort() when an exception ends the transaction",
    ),
    silent="If a producer with the same transactional id returns, or the broker closed the connection.",
)
def transaction_left_open(facts: ClientFacts) -> Iterator[Evidence]:
    transactions = facts.transactions
    names = transactions.left_open
    if names:
        yield Evidence(
            f"transactions that were open when their producer disconnected: {len(names):,}, such as of {names[0]}",
            transactions.left_open_examples,
        )


@rule(
    Severity.WARNING,
    title="Transactions that take most of their timeout",
    why="When the application is a little slower, the broker aborts the transaction, and all its work is lost. "
    "Consumers with read_committed wait for its end.",
    citation=cited(
        "Producer Configs, transaction.timeout.ms",
        "The maximum amount of time in milliseconds that a transaction will remain open before the coordinator "
        "proactively aborts it.",
    ),
    remedy=_LONGER_TIMEOUT,
    silent="If transactions take less than 80 % of their timeout, or the journal has no InitProducerId of the "
    "producer.",
)
def transaction_near_timeout(facts: ClientFacts) -> Iterator[Evidence]:
    transactions = facts.transactions
    if transactions.near_timeout:
        yield Evidence(
            f"transactions that took at least {NEAR_SHARE:.0%} of their timeout: {transactions.near_timeout:,}, "
            f"the longest {transactions.longest_share:.0%}",
            transactions.near_examples,
        )


@rule(
    Severity.ERROR,
    title="Transactions that exceed their timeout",
    why="The broker has aborted the transaction and fenced the producer, which fails with its next request. Nothing of "
    "the transaction is visible to consumers with read_committed.",
    citation=cited(
        "Producer Configs, transaction.timeout.ms",
        "The maximum amount of time in milliseconds that a transaction will remain open before the coordinator "
        "proactively aborts it.",
    ),
    remedy=_LONGER_TIMEOUT,
    silent="If the producer sends no request after the timeout, or the journal has no InitProducerId of the producer.",
)
def transaction_timed_out(facts: ClientFacts) -> Iterator[Evidence]:
    transactions = facts.transactions
    if transactions.timed_out:
        yield Evidence(
            f"requests that failed after the timeout of their transaction: {transactions.timed_out:,}",
            transactions.timed_out_examples,
        )


@rule(
    Severity.ERROR,
    title="A transaction timeout that the broker does not allow",
    why="The producer cannot start.",
    citation=cited(
        "Producer Configs, transaction.timeout.ms",
        "If this value is larger than the transaction.max.timeout.ms setting in the broker, the request will fail with "
        "a InvalidTxnTimeoutException error.",
    ),
    remedy=properties(
        "transaction.timeout.ms=60000",
        franz_go="kgo.TransactionTimeout(40 * time.Second)",
        kafkajs="transactionTimeout: 60000",
    ),
    silent="If a fault rule injected the error.",
)
def transaction_timeout_rejected(facts: ClientFacts) -> Iterator[Evidence]:
    transactions = facts.transactions
    if transactions.invalid_timeouts:
        timeouts = ", ".join(f"{each:,} ms" for each in sorted(transactions.invalid_timeouts))
        yield Evidence(
            f"InitProducerId failed with INVALID_TRANSACTION_TIMEOUT for {timeouts}", transactions.timeout_examples
        )


@rule(
    Severity.ERROR,
    title="A transactional.id that several producers use",
    why="The broker accepts only the latest producer with a transactional id. When several instances use one id, each "
    "stops the one before, and transactions are aborted.",
    citation=cited(
        "KafkaProducer",
        "As such, it should be unique to each producer instance running within a partitioned application.",
    ),
    remedy=properties(
        "a transactional.id per instance, such as one with the number of its shard",
        franz_go="a kgo.TransactionalID per instance, such as one with the number of its shard",
        kafkajs="a transactionalId per instance, such as one with the number of its shard",
    ),
    silent="If it happened once in 5 minutes, as it may when an instance is replaced; if a fault rule injected the "
    "error.",
)
def transactional_id_shared(facts: ClientFacts) -> Iterator[Evidence]:
    fenced = facts.transactions.fenced
    if fenced.fastest_ns:
        yield Evidence(
            f"producers were fenced {fenced.count:,} times by a newer one with their transactional id, "
            f"{fenced.in_words}",
            fenced.examples,
        )
