"""ListPartitionReassignments always returns an empty list."""

import pytest

from sluice.protocol.apis import list_partition_reassignments as api
from tests.support.virtual_broker import broker_with_topic

WITHOUT_REASSIGNMENTS = {
    "all topics": None,
    "one partition": [api.ListPartitionReassignmentsTopics(name="t", partition_indexes=[0])],
    "unknown topic": [api.ListPartitionReassignmentsTopics(name="no", partition_indexes=[0])],
}


@pytest.mark.parametrize("topics", WITHOUT_REASSIGNMENTS.values(), ids=WITHOUT_REASSIGNMENTS)
def test_no_reassignments_are_listed(topics: list[api.ListPartitionReassignmentsTopics] | None) -> None:
    broker = broker_with_topic()
    response = broker.client().call(api.ListPartitionReassignmentsRequest(topics=topics), 0)
    assert (response.error_code, response.error_message, response.topics) == (0, None, [])
