"""ElectLeaders: with one broker no election is ever needed, and Kafka says so."""

from typing import Any

import pytest

from sluice.protocol.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker

PREFERRED, UNCLEAN, UNKNOWN = 0, 1, 5
NOT_NEEDED = (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")


def elect(kind: int, wanted: dict[str, list[int]] | None, version: int = 2) -> tuple[int, dict[str, Any]]:
    """The error of the whole, and by topic the (partition, code, message) of each; there are t-0 and t-1."""
    broker = VirtualBroker()
    broker.topic(partitions=2)
    topics = None if wanted is None else [TopicPartitions(topic=name, partitions=p) for name, p in wanted.items()]
    response = broker.client().ask(ElectLeadersRequest(election_type=kind, topic_partitions=topics), version)
    return response.error_code, {
        result.topic: [(one.partition_id, one.error_code, one.error_message) for one in result.partition_result]
        for result in response.replica_election_results
    }


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN], ids=["preferred", "unclean"])
def test_a_partition_has_its_leader(kind: int) -> None:
    assert elect(kind, {"t": [1, 0]}) == (0, {"t": [(1, *NOT_NEEDED), (0, *NOT_NEEDED)]})


def test_of_all_partitions_those_that_need_no_election_are_not_told() -> None:
    assert elect(PREFERRED, None) == (0, {"t": []})


def test_what_is_not_told_is_not_counted_as_an_error() -> None:
    broker = VirtualBroker()
    broker.topic(partitions=2)
    broker.client().ask(ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None), 2)
    assert [route.errors for route in broker.broker.dispatcher.routes] == [{}]


@pytest.mark.parametrize(
    ("name", "index", "message"),
    [
        pytest.param("nowhere", 0, "No such topic as nowhere", id="an unknown topic: 3"),
        pytest.param("t", 2, "No such partition as t-2", id="an unknown partition: 3"),
        pytest.param("t", -1, "No such partition as t--1", id="a negative partition: 3"),
    ],
)
def test_what_is_not_there_has_no_leader(name: str, index: int, message: str) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert elect(PREFERRED, {name: [index]}) == (0, {name: [(index, unknown, message)]})


@pytest.mark.parametrize("wanted", [{"t": [0]}, None], ids=["of a partition", "of all"])
def test_an_election_of_an_unknown_type_is_refused(wanted: dict[str, list[int]] | None) -> None:
    code, results = elect(UNKNOWN, wanted)
    assert code == ErrorCode.INVALID_REQUEST
    assert results == ({"t": [(0, code, "Unknown election type 5")]} if wanted else {})


def test_version_0_knows_only_preferred_leaders() -> None:
    assert elect(UNKNOWN, {"t": [0]}, version=0) == (0, {"t": [(0, *NOT_NEEDED)]})
