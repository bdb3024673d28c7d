"""Requests and states in words."""

from collections.abc import Iterable
from typing import Any

import pytest

from sluice.broker.faults.rule import parse_rule
from sluice.journal_events import FetchedRecords, ProducedBatch, Request, TopicPartition
from sluice.trace.described import counted, detail_of, outcome_of, rule_text, text_of
from sluice.trace.model import Outcome
from tests.support.journals import Journal


def request(api: str = "Produce", **fields: Any) -> Request:
    journal = Journal()
    journal.request(api, 1, *(() if "ended_ms" in fields else (2,)), **fields)
    (event,) = journal.events
    assert isinstance(event, Request)
    return event


def places(*names: str) -> Iterable[TopicPartition]:
    return [TopicPartition(topic=name, partition=0) for name in names]


TEXTS = {
    "Produce (v9)": request(),
    "Produce a-0 (v9)": request(partitions=places("a")),
    "Produce a-0, b-0 and 1 more (v9)": request(partitions=places("a", "b", "c")),
    "Metadata a (v9)": request("Metadata", partitions=[TopicPartition(topic="a", partition=-1)]),
    "JoinGroup g (v9)": request("JoinGroup", group_id="g"),
    "EndTxn tx (v9)": request("EndTxn", transactional_id="tx"),
}


@pytest.mark.parametrize(("text", "event"), TEXTS.items(), ids=TEXTS)
def test_texts(event: Request, text: str) -> None:
    assert text_of(event) == text


OUTCOMES = [
    (request(), Outcome("ok", "ok")),
    (request(throttle_ms=5), Outcome("throttled", "throttled")),
    (request(errors=[6]), Outcome("NOT_LEADER_OR_FOLLOWER", "error")),
    (request(errors=[6, 3]), Outcome("NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION", "error")),
    (request(errors=[79]), Outcome("MEMBER_ID_REQUIRED", "neutral")),
    (request(errors=[79, 6]), Outcome("MEMBER_ID_REQUIRED, NOT_LEADER_OR_FOLLOWER", "error")),
    (request(ended_ms=5), Outcome("no response", "lost")),
    (request(errors=[6], rule_id="r"), Outcome("fault rule r", "fault")),
]


@pytest.mark.parametrize(("event", "outcome"), OUTCOMES, ids=[outcome.name for _, outcome in OUTCOMES])
def test_outcomes(event: Request, outcome: Outcome) -> None:
    assert outcome_of(event) == outcome


BATCH = ProducedBatch(records=2, bytes=90, compression="zstd", is_transactional=True)
READ = FetchedRecords(bytes=70, high_watermark=9, last_stable_offset=8)
DETAILS = [
    (request(errors=[6], rule_id="r"), [("error", "NOT_LEADER_OR_FOLLOWER (6)"), ("fault rule", "r")]),
    (
        request(partitions=[TopicPartition(topic="t", partition=0, offset=5, batch=BATCH)]),
        [("t-0", "offset 5, 2 records, 90 bytes, zstd, transactional")],
    ),
    (
        request(partitions=[TopicPartition(topic="t", partition=0, producer_id=1, producer_epoch=2, base_sequence=3)]),
        [("t-0", "producer 1 epoch 2 sequence 3")],
    ),
    (
        request(partitions=[TopicPartition(topic="t", partition=0, offset=5, fetched=READ)]),
        [("t-0", "offset 5, 70 bytes, high watermark 9")],
    ),
    (
        request(partitions=[TopicPartition(topic="t", partition=0, batch=ProducedBatch(bytes=90))]),
        [("t-0", "90 bytes")],
    ),
    (request("JoinGroup", group_id="g"), [("group", "g")]),
    (request("EndTxn", transactional_id="tx"), [("transactional id", "tx")]),
    (
        request(sent={"acks": -1, "all_topics": True}, returned={"members": ["a", "b"]}),
        [("sent", "acks=-1, all_topics=true"), ("returned", "members=[a, b]")],
    ),
]


@pytest.mark.parametrize(("event", "detail"), DETAILS, ids=[str(detail[0]) for _, detail in DETAILS])
def test_details(event: Request, detail: list[tuple[str, str]]) -> None:
    assert list(detail_of(event)) == detail


RULES = {
    "an action": ({"action": "close"}, "close"),
    "with conditions": ({"action": "close", "id": "r", "api": "Produce", "times": 3}, "close: api=Produce, times=3"),
    "with fields of the action": ({"action": {"kind": "error", "code": 6}, "topic": "t"}, "error code=6: topic=t"),
}


@pytest.mark.parametrize(("rule", "text"), RULES.values(), ids=RULES)
def test_rules(rule: dict[str, object], text: str) -> None:
    assert rule_text(parse_rule(rule, "rule")) == text


def test_counted() -> None:
    assert (counted(1, "hit"), counted(0, "hit"), counted(2_000, "hit")) == ("1 hit", "0 hits", "2,000 hits")
