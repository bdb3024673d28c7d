"""Messages in Kafka's JSON form."""

import pytest

from sluice.protocol.apis import fetch as api
from tests.support.kafka_json import from_json, to_json

TOPIC = {"topicId": "AAECAwQFBgcICQoLDA0ODw", "partitions": [{"partition": 1, "fetchOffset": 5}]}


def test_only_fields_of_the_version_and_set_tagged_fields_are_shown() -> None:
    request = api.FetchRequest(topics=[api.FetchTopic("t", bytes(range(16)), [api.FetchPartition(1, fetch_offset=5)])])
    old = to_json(request, 0)
    assert list(old) == ["replicaId", "maxWaitMs", "minBytes", "topics"]
    assert old["topics"] == [{"topic": "t", "partitions": [{"partition": 1, "fetchOffset": 5, "partitionMaxBytes": 0}]}]
    new = to_json(request, 18)
    assert "clusterId" not in new
    assert "replicaId" not in new
    assert from_json(api.FetchRequest, 18, {"topics": [TOPIC]}).topics == [
        api.FetchTopic("", bytes(range(16)), [api.FetchPartition(1, fetch_offset=5)])
    ]


BUFFERS = {"bytes": b"\0\1\2", "view": memoryview(b"\0\1\2"), "segments": (b"\0", b"\1\2")}


@pytest.mark.parametrize("records", BUFFERS.values(), ids=BUFFERS)
def test_records_are_base64_for_any_buffer_type(records: bytes) -> None:
    response = api.FetchResponse(
        responses=[api.FetchableTopicResponse(partitions=[api.PartitionData(records=records)])]
    )
    form = to_json(response, 13)
    read = from_json(api.FetchResponse, 13, form)
    assert read.responses[0].partitions[0].records == b"\0\1\2"
    assert "AAEC" in str(form)


def test_tagged_struct_of_defaults_is_omitted() -> None:
    partition = api.PartitionData(current_leader=api.LeaderIdAndEpoch())
    assert "currentLeader" not in to_json(partition, 12)
    partition.current_leader = api.LeaderIdAndEpoch(leader_id=1)
    assert to_json(partition, 12)["currentLeader"] == {"leaderId": 1, "leaderEpoch": -1}
