"""The subject of a request, as the journal records it: partitions, producers, groups and transactions."""

import pytest

from sluice.broker.journal.about import EMPTY_SUBJECT, reader_of
from sluice.broker.metadata.topic import JOURNAL_TOPIC
from sluice.broker.requests.trace import RequestSubject
from sluice.protocol.apis import API_KEYS, Api, ApiKey, api_of
from sluice.protocol.message import Message
from tests.support.groups import delete_offsets_request
from tests.support.messages import request
from tests.support.records import batch, fetch, produce, records_for

IDEMPOTENT = batch(producer_id=9, producer_epoch=2, base_sequence=30)
TWO = request(
    "Produce",
    transactional_id="tx",
    topic_data=[{"name": "t", "partition_data": [{"index": index, "records": IDEMPOTENT}]} for index in (0, 1)],
)
AT_MS = 1_700_000_000_000
# Magic, attributes, timestamps, producer, number of records.
START = (2, 0, AT_MS, AT_MS, -1, -1, -1, 1)
IDEMPOTENT_START = (2, 0, AT_MS, AT_MS, 9, 2, 30, 1)
SIZE = len(IDEMPOTENT)
ACKS, TIMEOUT_MS = produce(9).acks, produce(9).timeout_ms
FETCH_FIELDS = (0, 0, 0x7FFF_FFFF, 0, 0, -1, -1)
FETCHED = (0, 1, 0x7FFF_FFFF, 0, 0, -1, -1, 1 << 20)
CASES: dict[str, tuple[Message, RequestSubject]] = {
    "Produce of a producer that is not idempotent": (produce(9), ("t", 0, START, SIZE, None, ACKS, TIMEOUT_MS)),
    "Produce of an idempotent producer": (
        produce(9, IDEMPOTENT),
        ("t", 0, IDEMPOTENT_START, SIZE, None, ACKS, TIMEOUT_MS),
    ),
    "Produce by topic id": (
        produce(13, IDEMPOTENT, topic="", topic_id=b"i" * 16),
        (b"i" * 16, 0, IDEMPOTENT_START, SIZE, None, ACKS, TIMEOUT_MS),
    ),
    "Produce with truncated records": (produce(9, b"short"), ("t", 0, None, 5, None, ACKS, TIMEOUT_MS)),
    "Produce to two partitions": (
        TWO,
        ((("t", 0, -1, (IDEMPOTENT_START, SIZE, ())), ("t", 1, -1, (IDEMPOTENT_START, SIZE, ()))), 0, "", "tx", (0, 0)),
    ),
    "Fetch": (fetch(), ((("t", 0, 0, None),), 0, "", "", FETCHED)),
    "Fetch without partitions": (request("Fetch"), ((), 0, "", "", FETCH_FIELDS)),
    "FindCoordinator of a group": (request("FindCoordinator", key="g"), ((), 0, "g", "", (0, ["g"]))),
    "FindCoordinator of a transaction": (
        request("FindCoordinator", key_type=1, coordinator_keys=["tx"]),
        ((), 0, "", "tx", (1, ["tx"])),
    ),
    "FindCoordinator of two groups": (
        request("FindCoordinator", coordinator_keys=["a", "b"]),
        ((), 0, "", "", (0, ["a", "b"])),
    ),
    "Heartbeat": (request("Heartbeat", group_id="g", member_id="m", generation_id=3), ((), 0, "g", "", ("m", None, 3))),
    "OffsetCommit": (
        request(
            "OffsetCommit",
            group_id="g",
            topics=[{"name": "t", "partitions": [{"partition_index": 4, "committed_offset": 70}]}],
        ),
        ((("t", 4, 70, None),), 0, "g", "", ("", None, -1)),
    ),
    "OffsetCommit of a topic without partitions": (
        request(
            "OffsetCommit",
            group_id="g",
            topics=[
                {"name": "empty", "partitions": []},
                {"name": "t", "partitions": [{"partition_index": 4, "committed_offset": 70}]},
            ],
        ),
        ((("empty", -1, -1, None), ("t", 4, 70, None)), 0, "g", "", ("", None, -1)),
    ),
    "AddPartitionsToTxn": (
        request(
            "AddPartitionsToTxn",
            transactions=[{"transactional_id": "tx", "topics": [{"name": "t", "partitions": [3]}]}],
        ),
        ((("t", 3, -1, None),), 0, "", "tx", ()),
    ),
    "OffsetDelete": (delete_offsets_request(partition=4, group_id="g"), ((("t", 4, -1, None),), 0, "g", "", ())),
    "CreateTopics": (
        request("CreateTopics", topics=[{"name": "t", "num_partitions": 3}]),
        ((("t", -1, -1, None),), 0, "", "", ()),
    ),
    "DeleteTopics up to version 5": (
        request("DeleteTopics", topic_names=["t"], timeout_ms=1000),
        ((("t", -1, -1, None),), 0, "", "", ()),
    ),
    "ListGroups": (request("ListGroups"), EMPTY_SUBJECT),
}


@pytest.mark.parametrize(("request_", "expected"), CASES.values(), ids=CASES)
def test_subject_of_a_request(request_: Message, expected: RequestSubject) -> None:
    assert reader_of(api_of(type(request_)).key, {})(request_) == expected


def test_message_set_has_no_producer() -> None:
    subject = reader_of(ApiKey.PRODUCE, {})(produce(2, records_for(2, b"v" * 100)))
    assert subject is not None
    assert subject[2] is not None
    assert subject[2][0] == 1, "magic 1: a message set has no producer fields"


JOURNAL_TOPIC_REQUESTS: dict[str, tuple[Message, bool]] = {
    "Fetch of the journal topic": (fetch(topic=JOURNAL_TOPIC), False),
    "Metadata of the journal topic": (request("Metadata", topics=[{"name": JOURNAL_TOPIC}]), False),
    "Metadata of the journal topic and another topic": (
        request("Metadata", topics=[{"name": JOURNAL_TOPIC}, {"name": "t"}]),
        True,
    ),
    "Fetch of another topic": (fetch(), True),
}


@pytest.mark.parametrize(("request_", "is_recorded"), JOURNAL_TOPIC_REQUESTS.values(), ids=JOURNAL_TOPIC_REQUESTS)
def test_requests_for_only_the_journal_topic_are_not_recorded(request_: Message, is_recorded: bool) -> None:
    assert (reader_of(api_of(type(request_)).key, {})(request_) is not None) == is_recorded


def test_fetch_of_several_topics_with_the_journal_topic_is_not_recorded() -> None:
    both = request("Fetch", topics=[*fetch().topics, *fetch(topic=JOURNAL_TOPIC).topics])
    assert reader_of(ApiKey.FETCH, {})(both) is None


@pytest.mark.parametrize("api", API_KEYS.values(), ids=lambda api: api.name)
def test_empty_request_of_any_api_is_about_nothing(api: Api) -> None:
    subject = reader_of(api.key, {})(api.request())
    assert subject is not None
    assert subject[:4] == EMPTY_SUBJECT[:4]
