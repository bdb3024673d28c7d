"""Consumers without records: from the end, behind a transaction, or of another partition."""

import pytest

from sluice.journal_events import FetchedRecords, TopicPartition
from sluice.trace.findings.consumers import nothing_read as find
from tests.support.journals import Journal, fetched
from tests.support.trace_findings import Make, found, kinds


def look_up(journal: Journal, timestamp: int = -1) -> None:
    place = TopicPartition(topic="t", partition=0, offset=3)
    journal.request("ListOffsets", 1, 2, partitions=[place], sent={"timestamp": timestamp})


def from_end(*, timestamp: int = -1, offset: int = 3, nbytes: int = 0) -> Make:
    def make(journal: Journal) -> None:
        look_up(journal, timestamp)
        journal.request("Fetch", 5, 6, partitions=[fetched("t", 0, offset, nbytes, 4)])

    return make


def behind(*, offset: int = 2, isolation: int = 1, stable: int = 2, ongoing: bool = True) -> Make:
    def make(journal: Journal) -> None:
        if ongoing:
            journal.transaction_state(1, "Empty", "Ongoing")
        read = FetchedRecords(bytes=0, high_watermark=5, last_stable_offset=stable)
        place = TopicPartition(topic="t", partition=0, offset=offset, fetched=read)
        journal.request("Fetch", 5, 6, partitions=[place], sent={"isolation_level": isolation})

    return make


def elsewhere(*, high_watermark: int = 0, reads_it: bool = False, partition: int = -1, is_member: bool = False) -> Make:
    def make(journal: Journal) -> None:
        if is_member:
            journal.request("JoinGroup", 1, 2, group_id="g")
        writer = journal.beside(client_id="writer")
        if partition >= 0:
            writer.batch(1, 2, topic="order", partition=partition)
        else:
            writer.batch(1, 2, topic="payments")
            writer.batch(3, 4, topic="orders")
        journal.request("Fetch", 5, 6, partitions=[fetched("order", 0, 0, 0, high_watermark)])
        if reads_it:
            places = [fetched("orders", 0, 0, 9, 1), fetched("payments", 0, 0, 9, 1)]
            journal.request("Fetch", 7, 8, partitions=places)

    return make


CASES = {
    "starts at the end": (from_end(), [("read-from-end", "error")], "t-0 (offset 3)"),
    "skips some": (from_end(nbytes=50), [("read-from-end", "warning")], "auto.offset.reset=earliest"),
    "starts at the beginning": (from_end(timestamp=-2, offset=0), [], ""),
    "an empty partition": (from_end(offset=0), [], ""),
    "waits for a transaction": (behind(), [("records-not-committed", "error")], "tx (Ongoing since +0.001 s)"),
    "without its state": (behind(ongoing=False), [("records-not-committed", "error")], "3 records up to"),
    "reads uncommitted records": (behind(isolation=0), [], ""),
    "has not reached it": (behind(offset=0), [], ""),
    "all is stable": (behind(stable=5), [], ""),
    "the records are elsewhere": (elsewhere(), [("read-elsewhere", "error")], "Client writer produced to orders-0"),
    "its partition has records": (elsewhere(high_watermark=7), [], ""),
    "in another partition": (elsewhere(partition=1), [("read-elsewhere", "error")], "produced to order-1"),
    "in a partition of another member": (elsewhere(partition=1, is_member=True), [], ""),
    "it reads both": (elsewhere(reads_it=True), [], ""),
}


@pytest.mark.parametrize(("make", "expected", "text"), CASES.values(), ids=CASES)
def test_readers(make: Make, expected: list[tuple[str, str]], text: str) -> None:
    findings = found(find, make)
    assert kinds(findings) == expected
    assert all(text in one.text for one in findings)


def test_the_nearest_name_is_first() -> None:
    (one,) = found(find, elsewhere())
    assert one.title == "Client app reads order-0, but the records are in orders-0, payments-0"
