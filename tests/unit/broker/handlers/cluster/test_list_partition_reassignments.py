"""ListPartitionReassignments always returns an empty list."""

import pytest

from sluice.protocol.apis import list_partition_reassignments as api
from tests.support.virtual_broker import broker_with_topic


@pytest.mark.parametrize(
    "topics",
    [
        pytest.param(None, id="all topics"),
        pytest.param([api.ListPartitionReassignmentsTopics(name="t", partition_indexes=[0])], id="one partition"),
        pytest.param([api.ListPartitionReassignmentsTopics(name="no", partition_indexes=[0])], id="unknown topic"),
    ],
)
def test_no_reassignments_are_listed(topics: list[api.ListPartitionReassignmentsTopics] | None) -> None:
    broker = broker_with_topic()
    response = broker.client().call(api.ListPartitionReassignmentsRequest(topics=topics), 0)
    assert (response.error_code, response.error_message, response.topics) == (0, None, [])
