"""A request to the controller without time left fails, unless there is nothing to do for it."""

import pytest

from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support.messages import request
from tests.support.virtual_broker import broker_with_topic
from tests.support.wire import error_codes

ID = bytes(15) + b"\7"
INVALID, LATE = ErrorCode.INVALID_REQUEST, ErrorCode.REQUEST_TIMED_OUT
NEW = {"name": "new", "num_partitions": 1, "replication_factor": 1}
METADATA = {"name": "__cluster_metadata", "num_partitions": 1, "replication_factor": 1}
MORE = {"name": "t", "count": 2}
BY_NAME, BY_ID, BY_BOTH, BY_NOTHING = (
    {"name": name, "topic_id": topic_id}
    for name, topic_id in (("t", bytes(16)), (None, ID), ("t", ID), (None, bytes(16)))
)
MOVED = {"name": "t", "partitions": [{"replicas": [1]}]}
REQUESTS: dict[str, tuple[Message, int, list[int]]] = {
    "CreateTopics": (request("CreateTopics", topics=[NEW]), 7, [LATE]),
    "CreateTopics of nothing": (request("CreateTopics", topics=[]), 7, []),
    "CreateTopics of a duplicate": (request("CreateTopics", topics=[NEW, NEW]), 7, [INVALID]),
    "CreateTopics of the metadata topic": (request("CreateTopics", topics=[METADATA]), 7, [INVALID]),
    "CreatePartitions": (request("CreatePartitions", topics=[MORE]), 3, [LATE]),
    "CreatePartitions of nothing": (request("CreatePartitions", topics=[]), 3, []),
    "CreatePartitions of a duplicate": (request("CreatePartitions", topics=[MORE, MORE]), 3, [INVALID]),
    "DeleteTopics before v6": (request("DeleteTopics", topic_names=["t"]), 5, [LATE]),
    "DeleteTopics of a duplicate before v6": (request("DeleteTopics", topic_names=["t", "t"]), 5, [INVALID]),
    "DeleteTopics by name": (request("DeleteTopics", topics=[BY_NAME]), 6, [LATE]),
    "DeleteTopics by id": (request("DeleteTopics", topics=[BY_ID]), 6, [LATE]),
    "DeleteTopics of nothing": (request("DeleteTopics", topics=[]), 6, []),
    "DeleteTopics by name and id": (request("DeleteTopics", topics=[BY_BOTH]), 6, [INVALID]),
    "DeleteTopics by neither": (request("DeleteTopics", topics=[BY_NOTHING]), 6, [INVALID]),
    "DeleteTopics of duplicates": (request("DeleteTopics", topics=[BY_NAME, BY_NAME, BY_ID, BY_ID]), 6, [INVALID] * 2),
    "DeleteTopics by both, and by name": (request("DeleteTopics", topics=[BY_BOTH, BY_NAME]), 6, [LATE] * 2),
    "AlterPartitionReassignments": (request("AlterPartitionReassignments", topics=[MOVED]), 1, [LATE] * 2),
    "AlterPartitionReassignments of nothing": (request("AlterPartitionReassignments", topics=[]), 1, []),
    "ElectLeaders": (request("ElectLeaders", topic_partitions=[{"topic": "t", "partitions": [0]}]), 2, [LATE] * 2),
    "ElectLeaders of all": (request("ElectLeaders", topic_partitions=None), 2, [LATE]),
    "ElectLeaders of nothing": (request("ElectLeaders", election_type=5, topic_partitions=[]), 2, []),
}


@pytest.mark.parametrize("timeout_ms", [0, -1])
@pytest.mark.parametrize(("request_", "version", "codes"), REQUESTS.values(), ids=REQUESTS)
def test_timeout_matters_if_there_is_something_to_do(
    request_: Message, version: int, codes: list[int], timeout_ms: int
) -> None:
    request_.timeout_ms = timeout_ms  # type: ignore[attr-defined]  # all of them have it
    assert error_codes(broker_with_topic().client().call(request_, version)) == codes
