"""Rules about topics that join facts of several clients and groups."""

from collections.abc import Iterable
from functools import partial

from sluice.journal_events import ProducedBatch, TopicPartition, Value
from sluice.lint.clients import ClientKey
from sluice.lint.facts.topics import Produced, TopicFacts
from tests.support.journals import Journal, fetched
from tests.support.rule_cases import RuleCase, rule_tests, silence_test

FETCH: dict[str, Value] = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 52428800, "partition_max_bytes": 1048576}


def fetch(journal: Journal, at_ms: float, partition: int, *, isolation: int = 0, fields: bool = True) -> None:
    sent = {**FETCH, "isolation_level": isolation} if fields else {}
    one = fetched("t", partition, 0, 1000, 100) if fields else TopicPartition(topic="t", partition=partition)
    journal.request("Fetch", at_ms, at_ms + 1, partitions=[one], sent=sent, returned={"session_id": 0})


def reads_transactions(*, isolation: int = 0, transactional: bool = True, fields: bool = True) -> Journal:
    """Return a journal with a producer and a consumer."""
    made = Journal(client_id="reader")
    producer = made.beside(client_id="writer")
    batch = ProducedBatch(records=10, bytes=100, compression="none", is_transactional=transactional)
    producer.batch(0, 1, batch=batch if fields else None, transactional_id="tx" if transactional else "")
    fetch(made, 100, 0, isolation=isolation, fields=fields)
    return made


def reads_partitions(partitions: Iterable[int], *, seconds: int = 20, produced: Iterable[int] = (0, 1, 2)) -> Journal:
    """Return a journal in which all produced partitions have records, and a consumer reads some of them."""
    made = Journal(client_id="reader")
    producer = made.beside(client_id="writer")
    for second in range(seconds + 1):
        for partition in produced:
            batch = ProducedBatch(records=10, bytes=100, compression="none")
            producer.batch(second * 1000, second * 1000 + 1, partition=partition, batch=batch)
        for partition in partitions:
            fetch(made, second * 1000 + 500, partition)
    return made


def reads_in_a_group(
    *, seconds: int = 20, commits: bool = False, transactional: bool = False, groups: Iterable[str] = ("g",)
) -> Journal:
    """Return the journal of a member, which maybe commits, or another client does in a transaction."""
    made = Journal(client_id="reader")
    for group_id in groups:
        sent: dict[str, Value] = {
            "member_id": "", "session_timeout_ms": 10000, "rebalance_timeout_ms": 10000, "protocols": ["range"],
        }  # fmt: skip
        member: dict[str, Value] = {"member_id": "m", "generation_id": 1}
        made.request("JoinGroup", 0, 1, group_id=group_id, sent=sent, returned=member)
        made.request("SyncGroup", 1, 2, group_id=group_id, sent=member, returned={"assignment": ["t-0"]})
        for second in range(1, seconds + 1, 3):
            made.request("Heartbeat", second * 1000, second * 1000 + 1, group_id=group_id, sent=member)
    fetch(made, 100, 0)
    one = TopicPartition(topic="t", partition=0, offset=5)
    if commits:
        made.request("OffsetCommit", 500, 501, group_id="g", sent=member, partitions=[one])
    if transactional:
        made.beside(client_id="writer").request("TxnOffsetCommit", 500, 501, group_id="g", partitions=[one])
    return made


CASES = {
    "read-uncommitted": RuleCase(
        "1 responses with records to readers with read_uncommitted (reader); 1 transactional batches",
        reads_transactions,
        partial(reads_transactions, isolation=1),
        partial(reads_transactions, fields=False),
    ),
    "partition-without-reader": RuleCase(
        "partitions without a reader: 1, 2; records produced to them while 1 others were read: 420",
        partial(reads_partitions, [0]),
        partial(reads_partitions, [0, 1, 2]),
        partial(reads_partitions, [0], seconds=5),
    ),
    "group-without-commits": RuleCase(
        "group g committed no offset in 19 s",
        reads_in_a_group,
        partial(reads_in_a_group, commits=True),
        partial(reads_in_a_group, seconds=10),
    ),
}


test_rule, test_all_rules_have_a_case = rule_tests(CASES, "topics")


SILENT = {
    "records without a transaction": ("read-uncommitted", partial(reads_transactions, transactional=False)),
    "a topic without a reader": ("partition-without-reader", partial(reads_partitions, [])),
    "partitions without records": ("partition-without-reader", partial(reads_partitions, [0], produced=[0])),
    "offsets committed in transactions": ("group-without-commits", partial(reads_in_a_group, transactional=True)),
    "a client of two groups": ("group-without-commits", partial(reads_in_a_group, groups=["g", "h"])),
}


test_silence = silence_test(SILENT)


def contributions() -> list[TopicFacts]:
    return [
        TopicFacts(
            clients=[ClientKey(name, "", "")],
            produced={0: Produced(batches=1, records=2, bytes=3, transactional=number, span=(number, number + 5))},
            read={number: (10, 20), 7: (number, 30 - number)},
            is_unlisted=number == 1,
            reads_uncommitted=number,
            reading_groups={"g": (number, number + 1)},
            groups_without_commits={f"g{number}"},
        )
        for number, name in enumerate("abc")
    ]


def test_facts_of_topics_merge_in_any_order() -> None:
    forward, backward, nested = TopicFacts(), TopicFacts(), TopicFacts()
    first, second, third = contributions()
    for each in contributions():
        forward.merge(each)
    for each in reversed(contributions()):
        backward.merge(each)
    second.merge(third)
    nested.merge(second)
    nested.merge(first)
    assert forward == backward == nested
    assert forward.uncommitted_readers == [ClientKey("b", "", ""), ClientKey("c", "", "")]
    assert forward.produced == {0: Produced(batches=3, records=6, bytes=9, transactional=3, span=(0, 7))}
    assert forward.read == {0: (10, 20), 1: (10, 20), 2: (10, 20), 7: (0, 30)}
