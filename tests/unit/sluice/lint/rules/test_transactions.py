"""Rules about transactions: each fires, stays silent on healthy use, and stays silent without evidence."""

from collections.abc import Iterable
from functools import partial

from sluice.journal_events import ProducedBatch, Value
from sluice.protocol.errors import ErrorCode
from tests.support.journals import Journal
from tests.support.rule_cases import RuleCase, rule_tests, silence_test, texts

COORDINATOR, LEADER = 5, 6  # connections


class Producer:
    """A transactional producer."""

    def __init__(self) -> None:
        self.journal = Journal()
        self._add = partial(self.journal.request, transactional_id="tx", connection=COORDINATOR)

    def init(self, at_ms: float, *, timeout_ms: int = 60_000, errors: Iterable[int] = (), rule_id: str = "") -> None:
        sent: dict[str, Value] = {"transaction_timeout_ms": timeout_ms, "producer_id": -1, "producer_epoch": -1}
        self._add("InitProducerId", at_ms, at_ms + 1, sent=sent, errors=errors, rule_id=rule_id)

    def begin(self, at_ms: float) -> None:
        self._add("AddPartitionsToTxn", at_ms, at_ms + 1)

    def send(self, at_ms: float, records: int, *, errors: Iterable[int] = (), known: bool = True) -> None:
        batch = ProducedBatch(records=records, bytes=100, is_transactional=True) if known else None
        self.journal.batch(
            at_ms, at_ms + 1, batch=batch, transactional_id="tx", connection=LEADER, errors=errors, sequence=0
        )  # fmt: skip

    def end(self, at_ms: float, *, errors: Iterable[int] = (), rule_id: str = "") -> None:
        self._add("EndTxn", at_ms, at_ms + 1, sent={"committed": True}, errors=errors, rule_id=rule_id)


def transactions(records: int, *, count: int = 30, step_ms: float = 20, known: bool = True) -> Journal:
    """Return the journal of a producer with this number of records in each transaction."""
    producer = Producer()
    producer.init(0)
    for number in range(1, count + 1):
        at_ms = number * step_ms
        producer.begin(at_ms)
        producer.send(at_ms + 2, records, known=known)
        producer.end(at_ms + 4)
    return producer.journal


def without_begin(records: int) -> Journal:
    """Return the journal of a producer whose Produce requests begin the transactions (KIP-890)."""
    producer = Producer()
    producer.init(0)
    for at_ms in range(20, 620, 20):
        producer.send(at_ms, records)
        producer.end(at_ms + 4)
    return producer.journal


def lasts(
    ms: int, *, timeout_ms: int = 10_000, init: bool = True, errors: Iterable[int] = (), rule_id: str = ""
) -> Journal:
    """Return the journal of a producer with one transaction that takes this time, of 10 s."""
    producer = Producer()
    if init:
        producer.init(0, timeout_ms=10_000)
    producer.begin(10)
    producer.send(20, 5)
    producer.end(10 + ms, errors=errors, rule_id=rule_id)
    return producer.journal


def inits(*, errors: Iterable[int] = (ErrorCode.INVALID_TRANSACTION_TIMEOUT,), rule_id: str = "") -> Journal:
    producer = Producer()
    producer.init(0, timeout_ms=7_200_000, errors=errors, rule_id=rule_id)
    return producer.journal


def fenced(times: int, *, rule_id: str = "", requests: int = 1, apart_ms: int = 100) -> Journal:
    """Return the journal of producers with one transactional id, of which each is fenced by the next one."""
    producer = Producer()
    for number in range(times + 1):
        at_ms = number * apart_ms
        producer.init(at_ms)
        producer.begin(at_ms + 2)
        for request in range(requests if number < times else 0):
            producer.end(at_ms + 4 + request, errors=[ErrorCode.PRODUCER_FENCED], rule_id=rule_id)
    return producer.journal


def disconnects(*, ends: bool = False, by_client: bool = True, returns: bool = False) -> Journal:
    producer = Producer()
    number = producer.journal.connection(0, 50, by_client=by_client, answers=True)
    producer._add = partial(producer._add, connection=number)
    producer.init(2)
    producer.begin(10)
    if ends:
        producer.end(20)
    if returns:
        producer._add = partial(producer._add, connection=99)
        producer.end(60)
    return producer.journal


FENCED = [ErrorCode.INVALID_PRODUCER_EPOCH]

CASES = {
    "one-record-transactions": RuleCase(
        "30 of 30 transactions have at most one record",
        partial(transactions, 1),
        partial(transactions, 10),
        partial(transactions, 1, known=False),
    ),
    "transaction-near-timeout": RuleCase(
        "at least 80% of their timeout: 1, the longest 90%",
        partial(lasts, 9000),
        partial(lasts, 5000),
        partial(lasts, 9000, init=False),
    ),
    "transaction-timed-out": RuleCase(
        "after the timeout of their transaction: 1",
        partial(lasts, 15_000, errors=FENCED),
        partial(lasts, 5000),
        partial(lasts, 15_000, errors=FENCED, rule_id="fault-1"),
    ),
    "transaction-timeout-rejected": RuleCase(
        "INVALID_TRANSACTION_TIMEOUT for 7,200,000 ms",
        inits,
        partial(inits, errors=[]),
        partial(inits, rule_id="fault-1"),
    ),
    "transactional-id-shared": RuleCase(
        "producers were fenced 3 times", partial(fenced, 3), partial(fenced, 0), partial(fenced, 3, rule_id="fault-1")
    ),
    "transaction-left-open": RuleCase(
        "when their producer disconnected: 1, such as of tx",
        disconnects,
        partial(disconnects, ends=True),
        partial(disconnects, by_client=False),
    ),
}


test_rule, test_all_rules_have_a_case = rule_tests(CASES, "transactions")


SILENT = {
    "single records at a low rate": ("one-record-transactions", partial(transactions, 1, step_ms=1000)),
    "few transactions": ("one-record-transactions", partial(transactions, 1, count=19)),
    "a producer that was fenced before its timeout": ("transaction-timed-out", partial(lasts, 5000, errors=FENCED)),
    "an instance that is replaced": ("transactional-id-shared", partial(fenced, 1)),
    "instances that are replaced every ten minutes": ("transactional-id-shared", partial(fenced, 3, apart_ms=600_000)),
    "several requests of one fenced producer": ("transactional-id-shared", partial(fenced, 1, requests=3)),
    "transactions that time out": ("transactional-id-shared", partial(lasts, 15_000, errors=FENCED)),
    "a producer that connects again": ("transaction-left-open", partial(disconnects, returns=True)),
}


test_silence = silence_test(SILENT)


def test_transactions_that_a_produce_begins_count() -> None:
    assert len(texts("one-record-transactions", without_begin(1))) == 1
