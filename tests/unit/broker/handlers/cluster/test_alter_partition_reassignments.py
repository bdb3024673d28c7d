"""AlterPartitionReassignments accepts only the current replicas; other assignments return Kafka's errors."""

import pytest

from sluice.protocol.apis import alter_partition_reassignments as api
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

ASSIGNMENT = "The manual partition assignment includes "
INVALID, UNKNOWN = ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
REASSIGNMENTS = {
    "current replicas": ("t", 0, [1], ErrorCode.NONE, None),
    "cancellation": ("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None),
    "empty replica list": ("t", 0, [], INVALID, ASSIGNMENT + "an empty replica list."),
    "unknown broker": ("t", 0, [1, 2], INVALID, ASSIGNMENT + "broker 2, but no such broker is registered."),
    "duplicate broker": ("t", 0, [1, 1], INVALID, ASSIGNMENT + "the broker 1 more than once."),
    "unknown partition": ("t", 7, [1], UNKNOWN, "Unable to find partition t:7."),
    "unknown topic": ("nowhere", 0, [1], UNKNOWN, "Unable to find a topic named nowhere."),
}


@pytest.mark.parametrize("version", range(2))
@pytest.mark.parametrize(("name", "index", "replicas", "code", "message"), REASSIGNMENTS.values(), ids=REASSIGNMENTS)
def test_reassignment_accepts_only_the_current_replicas(
    version: int, name: str, index: int, replicas: list[int] | None, code: ErrorCode, message: str | None
) -> None:
    broker = broker_with_topic()
    partition = api.ReassignablePartition(partition_index=index, replicas=replicas)
    request = api.AlterPartitionReassignmentsRequest(topics=[api.ReassignableTopic(name=name, partitions=[partition])])
    response = broker.client().call(request, version)
    assert (response.error_code, response.error_message) == (0, None)
    ((result,),) = [topic.partitions for topic in response.responses if topic.name == name]
    assert (result.partition_index, result.error_code, result.error_message) == (index, code, message)


def test_version_1_returns_allow_replication_factor_change() -> None:
    request = api.AlterPartitionReassignmentsRequest(
        topics=[api.ReassignableTopic()], allow_replication_factor_change=False
    )
    assert VirtualBroker().client().call(request, 1).allow_replication_factor_change is False


def test_request_without_topics_gets_the_defaults() -> None:
    request = api.AlterPartitionReassignmentsRequest(allow_replication_factor_change=False, timeout_ms=0)
    response = VirtualBroker().client().call(request, 1)
    assert (response.error_code, response.error_message, response.responses) == (0, "", [])
    assert response.allow_replication_factor_change is True
