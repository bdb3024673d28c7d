"""DescribeTransactions, ListTransactions and DescribeProducers."""

from typing import Any

import pytest

from sluice.protocol.apis.describe_producers import DescribeProducersRequest, TopicRequest
from sluice.protocol.apis.describe_transactions import DescribeTransactionsRequest
from sluice.protocol.apis.list_transactions import ListTransactionsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.records import produce
from tests.support.transactions import NEW, Producer, begun, initialized
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker, broker_with_topic

# -- DescribeTransactions ----------------------------------------------------------------------------------------------


def test_transaction_is_described() -> None:
    broker = VirtualBroker()
    broker.topic("a", partitions=2)
    broker.topic("b")
    producer = initialized(broker, timeout_ms=12_345)
    broker.advance(1000)
    producer.add(("b", 0), ("a", 1))
    broker.advance(1000)
    producer.add(("a", 0))
    (described,) = broker.client().call(DescribeTransactionsRequest(transactional_ids=["tx"]), 0).transaction_states
    assert (described.error_code, described.transactional_id, described.transaction_state) == (0, "tx", "Ongoing")
    assert (described.producer_id, described.producer_epoch) == (0, 0)
    assert (described.transaction_timeout_ms, described.transaction_start_time_ms) == (12_345, WALL_START_MS + 1000)
    assert [(topic.topic, topic.partitions) for topic in described.topics] == [("a", [0, 1]), ("b", [0])]


def test_transactional_id_without_transaction_has_no_start_time() -> None:
    broker = VirtualBroker()
    Producer(broker).init()
    (described,) = broker.client().call(DescribeTransactionsRequest(transactional_ids=["tx"]), 0).transaction_states
    assert (described.transaction_state, described.transaction_start_time_ms, described.topics) == ("Empty", -1, [])


@pytest.mark.parametrize(
    ("transactional_id", "code"), [("", ErrorCode.INVALID_REQUEST), ("x", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)]
)
def test_unknown_transactional_id_is_rejected(transactional_id: str, code: ErrorCode) -> None:
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    (described,) = VirtualBroker().client().call(request, 0).transaction_states
    assert (described.transactional_id, described.error_code) == (transactional_id, code)


# -- ListTransactions --------------------------------------------------------------------------------------------------


@pytest.fixture
def broker() -> VirtualBroker:
    """Return a broker at 20 s with "open-a", started at 0 s, "open-b", started at 10 s, "done" and "empty"."""
    broker = broker_with_topic()
    for transactional_id in ("open-a", "open-b"):
        begun(broker, transactional_id=transactional_id)
        broker.advance(10_000)
    assert begun(broker, transactional_id="done").end() == 0
    Producer(broker, transactional_id="empty").init()
    return broker


OPEN_A, OPEN_B = {"open-a": "Ongoing"}, {"open-b": "Ongoing"}
DONE, EMPTY = {"done": "CompleteCommit"}, {"empty": "Empty"}
BY_STATE = {"state_filters": ["Ongoing"]}


FILTERS = {
    "all": (0, {}, OPEN_A | OPEN_B | DONE | EMPTY),
    "by state": (0, BY_STATE, OPEN_A | OPEN_B),
    "by several states": (0, {"state_filters": ["Empty", "CompleteCommit"]}, DONE | EMPTY),
    "by producer id": (0, {"producer_id_filters": [1, 77]}, OPEN_B),
    "open for more than ten seconds": (1, {"duration_filter": 10_000} | BY_STATE, OPEN_A),
    "open for ten seconds or less": (1, {"duration_filter": 9_999} | BY_STATE, OPEN_A | OPEN_B),
    "transactional id without transaction, as in Kafka": (1, {"duration_filter": 60_000}, EMPTY),
    "by regular expression": (2, {"transactional_id_pattern": "open-."}, OPEN_A | OPEN_B),
    "regular expression must match the whole id": (2, {"transactional_id_pattern": "open"}, {}),
    "empty regular expression is ignored": (2, {"transactional_id_pattern": "", "state_filters": ["Empty"]}, EMPTY),
}


@pytest.mark.parametrize(("version", "filters", "expected"), FILTERS.values(), ids=FILTERS)
def test_transactions_are_listed_by_filter(
    broker: VirtualBroker, version: int, filters: dict[str, Any], expected: dict[str, str]
) -> None:
    response = broker.client().call(ListTransactionsRequest(**filters), version)
    assert (response.error_code, response.unknown_state_filters) == (0, [])
    assert {listed.transactional_id: listed.transaction_state for listed in response.transaction_states} == expected


def test_unknown_state_filters_are_returned_once(broker: VirtualBroker) -> None:
    known = ["Dead", "PrepareEpochFence", "PrepareCommit", "PrepareAbort", "CompleteAbort"]
    response = broker.client().call(ListTransactionsRequest(state_filters=["Open", *known, "empty", "Open"]), 0)
    assert (response.error_code, response.transaction_states) == (0, [])
    assert response.unknown_state_filters == ["Open", "empty"]


@pytest.mark.parametrize("pattern", ["(", "(" * 1500, "a{4294967296}(", r"(a)\1"])
def test_invalid_regular_expression_is_rejected(broker: VirtualBroker, pattern: str) -> None:
    response = broker.client().call(ListTransactionsRequest(transactional_id_pattern=pattern), 2)
    assert (response.error_code, response.transaction_states) == (ErrorCode.INVALID_REGULAR_EXPRESSION, [])


# -- DescribeProducers -------------------------------------------------------------------------------------------------


def described(broker: VirtualBroker, topic: str, *partitions: int) -> list[Any]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(partitions))])
    partitions_: list[Any] = broker.client().call(request, 0).topics[0].partitions
    return partitions_


def test_active_producers_of_a_partition_are_described() -> None:
    broker = broker_with_topic(partitions=2)
    broker.client().call(produce(9), 9)
    first = begun(broker, NEW, transactional_id="a")
    first.send(b"w")
    second = begun(broker, NEW, transactional_id="b")
    assert second.end() == 0
    first_partition, other = described(broker, "t", 0, 1)
    assert (first_partition.error_code, other.error_code, other.active_producers) == (0, 0, [])
    assert [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.coordinator_epoch, p.current_txn_start_offset)
        for p in first_partition.active_producers
    ] == [(0, 0, 1, -1, 1), (1, 1, -1, 0, -1)]
    assert {p.last_timestamp for p in first_partition.active_producers} == {WALL_START_MS}


UNKNOWN_PARTITIONS = {
    "unknown partition": ("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
    "unknown topic": ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
    "invalid topic name": ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, True),
}


@pytest.mark.parametrize(("topic", "code", "has_message"), UNKNOWN_PARTITIONS.values(), ids=UNKNOWN_PARTITIONS)
def test_unknown_partition_is_rejected(topic: str, code: ErrorCode, has_message: bool) -> None:
    broker = broker_with_topic()
    (result,) = described(broker, topic, 1)
    assert (result.partition_index, result.error_code, result.error_message is not None) == (1, code, has_message)
