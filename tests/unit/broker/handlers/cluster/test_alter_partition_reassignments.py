"""AlterPartitionReassignments: a partition stays where it is; anything else has Kafka's error."""

import pytest

from sluice.protocol.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker

ASSIGNMENT = "The manual partition assignment includes "


@pytest.mark.parametrize("version", range(2))
@pytest.mark.parametrize(
    ("name", "index", "replicas", "code", "message"),
    [
        pytest.param("t", 0, [1], ErrorCode.NONE, None, id="to where it is"),
        pytest.param("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None, id="cancelled: 85"),
        pytest.param(
            "t",
            0,
            [],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ASSIGNMENT + "an empty replica list.",
            id="to no broker: 39",
        ),
        pytest.param(
            "t",
            0,
            [1, 2],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ASSIGNMENT + "broker 2, but no such broker is registered.",
            id="to an unknown broker: 39",
        ),
        pytest.param(
            "t",
            0,
            [1, 1],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ASSIGNMENT + "the broker 1 more than once.",
            id="to one broker twice: 39",
        ),
        pytest.param(
            "t", 7, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition t:7.", id="no partition: 3"
        ),
        pytest.param(
            "nowhere",
            0,
            [1],
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "Unable to find a topic named nowhere.",
            id="no topic: 3",
        ),
    ],
)
def test_a_partition_can_only_be_assigned_to_where_it_is(
    version: int, name: str, index: int, replicas: list[int] | None, code: ErrorCode, message: str | None
) -> None:
    broker = VirtualBroker()
    broker.topic()
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=name, partitions=[partition])])
    response = broker.client().ask(request, version)
    assert (response.error_code, response.error_message) == (0, None)
    ((result,),) = [topic.partitions for topic in response.responses if topic.name == name]
    assert (result.partition_index, result.error_code, result.error_message) == (index, code, message)


def test_version_1_is_told_whether_it_allowed_another_replication_factor() -> None:
    request = AlterPartitionReassignmentsRequest(allow_replication_factor_change=False)
    assert VirtualBroker().client().ask(request, 1).allow_replication_factor_change is False
