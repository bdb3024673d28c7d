"""ListPartitionReassignments: there are none."""

import pytest

from sluice.protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.support.virtual_broker import VirtualBroker


@pytest.mark.parametrize(
    "topics",
    [
        pytest.param(None, id="of all topics"),
        pytest.param([ListPartitionReassignmentsTopics(name="t", partition_indexes=[0])], id="of a partition"),
        pytest.param([ListPartitionReassignmentsTopics(name="no", partition_indexes=[0])], id="of an unknown topic"),
    ],
)
def test_nothing_is_being_reassigned(topics: list[ListPartitionReassignmentsTopics] | None) -> None:
    broker = VirtualBroker()
    broker.topic()
    response = broker.client().ask(ListPartitionReassignmentsRequest(topics=topics), 0)
    assert (response.error_code, response.error_message, response.topics) == (0, None, [])
