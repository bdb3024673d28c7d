"""DeleteRecords: new log start offsets, waiting for replicas, and errors."""

from typing import Any

import pytest

from sluice.broker.server.metrics import registry
from sluice.protocol.apis.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.records import produce
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic

HIGH_WATERMARK = -1
Result = tuple[int, int]  # low watermark, error code


def request(offsets: dict[tuple[str, int], int], timeout_ms: int = 60_000) -> DeleteRecordsRequest:
    """Return a request that deletes the records before each offset, by (topic, partition)."""
    return DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)])
            for (name, index), offset in offsets.items()
        ],
        timeout_ms=timeout_ms,
    )


def results(message: Any) -> dict[tuple[str, int], Result]:
    return {
        (topic.name, partition.partition_index): (partition.low_watermark, partition.error_code)
        for topic in message.topics
        for partition in topic.partitions
    }


def broker_with_records(*overrides: str) -> VirtualBroker:
    """Return a broker whose t-0 has replicated offsets 0 to 4."""
    broker = broker_with_topic(*overrides, partitions=2)
    for _ in range(5):
        broker.client().call(produce(9), 9)
    broker.advance(1000)
    return broker


DELETED = {
    "some records": (2, (2, 0)),
    "all records up to the high watermark": (HIGH_WATERMARK, (5, 0)),
    "offset at the high watermark": (5, (5, 0)),
    "no records": (0, (0, 0)),
    "offset above the high watermark": (6, (-1, ErrorCode.OFFSET_OUT_OF_RANGE)),
    "negative offset": (-2, (-1, ErrorCode.OFFSET_OUT_OF_RANGE)),
}


@pytest.mark.parametrize(("offset", "result"), DELETED.values(), ids=DELETED)
@pytest.mark.parametrize("version", range(3))
def test_records_before_the_offset_are_deleted(version: int, offset: int, result: Result) -> None:
    broker = broker_with_records()
    assert results(broker.client().call(request({("t", 0): offset}), version)) == {("t", 0): result}
    assert broker.partition().log.log_start_offset == max(0, result[0])


def test_lower_offset_restores_no_deleted_records() -> None:
    client = broker_with_records().client()
    client.call(request({("t", 0): 3}), 2)
    assert results(client.call(request({("t", 0): 1}), 2)) == {("t", 0): (3, 0)}


def test_last_offset_of_a_duplicate_partition_counts() -> None:
    broker = broker_with_records()
    twice = DeleteRecordsRequest(topics=request({("t", 0): 1}).topics + request({("t", 0): 9}).topics)
    assert results(broker.client().call(twice, 2)) == {("t", 0): (-1, ErrorCode.OFFSET_OUT_OF_RANGE)}
    assert broker.partition().log.log_start_offset == 0


INVALID_PARTITIONS = {
    "unknown topic": ("nowhere", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "unknown partition": ("t", 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "compacted topic": ("compacted", 0, ErrorCode.POLICY_VIOLATION),
    "internal topic": ("__consumer_offsets", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
}


@pytest.mark.parametrize(("name", "index", "code"), INVALID_PARTITIONS.values(), ids=INVALID_PARTITIONS)
def test_invalid_partition_is_rejected_without_affecting_others(name: str, index: int, code: ErrorCode) -> None:
    broker = broker_with_records()
    broker.topic("compacted", cleanup_policy="compact")
    broker.broker.cluster.internal_topic("__consumer_offsets")
    response = broker.client().call(request({("t", 0): 2, (name, index): 0}), 2)
    assert results(response) == {("t", 0): (2, 0), (name, index): (-1, code)}


def test_topic_with_compact_and_delete_policy_accepts_delete_records(broker: VirtualBroker) -> None:
    broker.topic(cleanup_policy="compact,delete")
    assert results(broker.client().call(request({("t", 0): HIGH_WATERMARK}), 2)) == {("t", 0): (0, 0)}


class TestWithReplicas:
    """`sluice.replication.delay.ms=100`: the replicas follow 100 ms later."""

    SENT_MS = 1000  # since the broker's start

    def send_request(self, timeout_ms: int) -> tuple[VirtualBroker, Client]:
        broker = broker_with_records("sluice.replication.delay.ms=100")
        client = broker.client()
        client.send(request({("t", 0): 3, ("t", 1): 0, ("nowhere", 0): 0}, timeout_ms), 2)
        assert (client.responses, broker.broker.replicas.delete_records.delayed) == ([], 1)
        waiting = registry(broker.cluster_server).get_sample_value
        assert waiting("sluice_purgatory_operations", {"kind": "DeleteRecords"}) == 1
        return broker, client

    def take_response(self, broker: VirtualBroker, client: Client) -> tuple[float, dict[tuple[str, int], Result]]:
        """Return the delay and the results."""
        response = client.response()
        assert broker.broker.replicas.delete_records.delayed == 0
        return response.at_ms - self.SENT_MS, results(response.message)

    def test_response_waits_for_the_replicas(self) -> None:
        broker, client = self.send_request(timeout_ms=5000)
        broker.advance(1000)
        expected = {("t", 0): (3, 0), ("t", 1): (0, 0), ("nowhere", 0): (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
        assert self.take_response(broker, client) == (100, expected)

    def test_timed_out_request_reports_request_timed_out_and_keeps_the_deletion(self) -> None:
        broker, client = self.send_request(timeout_ms=40)
        broker.advance(40)
        delay_ms, responses = self.take_response(broker, client)
        assert (delay_ms, responses["t", 0]) == (40, (0, ErrorCode.REQUEST_TIMED_OUT))
        assert responses["t", 1] == (0, 0)
        assert broker.partition().log.log_start_offset == 3

    def test_topic_deletion_completes_a_pending_delete_records(self) -> None:
        broker, client = self.send_request(timeout_ms=5000)
        broker.client().call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        delay_ms, responses = self.take_response(broker, client)
        assert (delay_ms, responses["t", 0]) == (0, (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

    def test_offset_above_the_replicated_records_is_rejected(self) -> None:
        broker = broker_with_topic("sluice.replication.delay.ms=100")
        client = broker.client()
        client.call(produce(9), 9)
        responses = results(client.call(request({("t", 0): 1}), 2))
        assert responses == {("t", 0): (-1, ErrorCode.OFFSET_OUT_OF_RANGE)}
