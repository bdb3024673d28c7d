"""Transactions that timed out, were aborted, are open, and fenced producers."""

import pytest

from sluice.trace.findings.transactions import transactions as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found, kinds

PRODUCER_FENCED = 90


def begin(journal: Journal) -> None:
    journal.request("InitProducerId", 1, 2, transactional_id="tx", sent={"transaction_timeout_ms": 1000})
    journal.transaction_state(5, "Empty", "Ongoing")


def timed_out(journal: Journal) -> None:
    begin(journal)
    journal.transaction_state(1006, "Ongoing", "PrepareAbort")
    journal.transaction_state(1007, "PrepareAbort", "CompleteAbort")


def aborted(journal: Journal) -> None:
    begin(journal)
    journal.request("EndTxn", 20, 22, transactional_id="tx", sent={"committed": False})
    journal.transaction_state(21, "Ongoing", "PrepareAbort")


def hidden(journal: Journal) -> None:
    aborted(journal)
    journal.request("Fetch", 30, 31, sent={"isolation_level": 1})


def replaced(journal: Journal) -> None:
    begin(journal)
    journal.beside(client_id="other").request("InitProducerId", 20, 22, transactional_id="tx")
    journal.transaction_state(21, "Ongoing", "PrepareEpochFence")


def committed(journal: Journal) -> None:
    begin(journal)
    journal.request("EndTxn", 20, 22, transactional_id="tx", sent={"committed": True})
    journal.transaction_state(21, "Ongoing", "PrepareCommit")
    journal.transaction_state(22, "PrepareCommit", "CompleteCommit")


def fenced(journal: Journal) -> None:
    journal.beside(client_id="other").request("InitProducerId", 1, 2, transactional_id="tx")
    journal.request("EndTxn", 20, 22, transactional_id="tx", errors=[PRODUCER_FENCED])


def by_rule(journal: Journal) -> None:
    journal.request("EndTxn", 20, 22, transactional_id="tx", errors=[PRODUCER_FENCED], rule_id="r")


CASES = {
    "timed out": (timed_out, [("transaction-timed-out", "error")], "transaction.timeout.ms is 1000"),
    "aborted by its producer": (aborted, [("transaction-aborted", "info")], "EndTxn at +0.020 s"),
    "aborted, and read": (hidden, [("transaction-aborted", "warning")], "do not get its records"),
    "aborted by another producer": (replaced, [("transaction-aborted", "warning")], "InitProducerId at +0.020 s"),
    "open at the end": (begin, [("transaction-open", "warning")], "since +0.005 s"),
    "fenced": (fenced, [("producer-fenced", "error")], "Client other initialized the transactional id at +0.001 s"),
    "committed": (committed, [], ""),
    "fenced by a fault rule": (by_rule, [], ""),
}


@pytest.mark.parametrize(("make", "expected", "text"), CASES.values(), ids=CASES)
def test_transactions(make: Make, expected: list[tuple[str, str]], text: str) -> None:
    findings = found(find, make)
    assert kinds(findings) == expected
    assert all(text in one.text for one in findings)
