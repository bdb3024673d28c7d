"""ElectLeaders: with one broker, no election is needed."""

from typing import Any

import pytest

from sluice.protocol.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

PREFERRED, UNCLEAN, UNKNOWN = 0, 1, 5
NOT_NEEDED = (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")


def elect(kind: int, partitions: dict[str, list[int]] | None, version: int = 2) -> tuple[int, dict[str, Any]]:
    """Return the top-level error and (partition, code, message) per topic; t-0 and t-1 exist."""
    broker = broker_with_topic(partitions=2)
    topics = (
        None if partitions is None else [TopicPartitions(topic=name, partitions=p) for name, p in partitions.items()]
    )
    response = broker.client().call(ElectLeadersRequest(election_type=kind, topic_partitions=topics), version)
    return response.error_code, {
        result.topic: [(item.partition_id, item.error_code, item.error_message) for item in result.partition_result]
        for result in response.replica_election_results
    }


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN], ids=["preferred", "unclean"])
def test_election_for_a_partition_with_a_leader_is_not_needed(kind: int) -> None:
    assert elect(kind, {"t": [1, 0]}) == (0, {"t": [(1, *NOT_NEEDED), (0, *NOT_NEEDED)]})


def test_election_for_all_partitions_omits_those_that_need_none() -> None:
    assert elect(PREFERRED, None) == (0, {"t": []})


def test_omitted_partitions_are_not_counted_as_errors(broker: VirtualBroker) -> None:
    broker.topic(partitions=2)
    broker.client().call(ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None), 2)
    assert [route.errors for route in broker.server.exchange.routes] == [{}]


UNKNOWN_PARTITIONS = {
    "unknown topic": ("nowhere", 0, "No such topic as nowhere"),
    "unknown partition": ("t", 2, "No such partition as t-2"),
    "negative partition": ("t", -1, "No such partition as t--1"),
}


@pytest.mark.parametrize(("name", "index", "message"), UNKNOWN_PARTITIONS.values(), ids=UNKNOWN_PARTITIONS)
def test_unknown_partition_is_rejected(name: str, index: int, message: str) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert elect(PREFERRED, {name: [index]}) == (0, {name: [(index, unknown, message)]})


@pytest.mark.parametrize("partitions", [{"t": [0]}, None], ids=["one partition", "all partitions"])
def test_unknown_election_type_is_rejected(partitions: dict[str, list[int]] | None) -> None:
    code, results = elect(UNKNOWN, partitions)
    assert code == ErrorCode.INVALID_REQUEST
    assert results == ({"t": [(0, code, "Unknown election type 5")]} if partitions else {})


def test_version_0_ignores_the_election_type() -> None:
    assert elect(UNKNOWN, {"t": [0]}, version=0) == (0, {"t": [(0, *NOT_NEEDED)]})
