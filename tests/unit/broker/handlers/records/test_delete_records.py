"""DeleteRecords: logs start later; it waits for simulated replicas; Kafka's refusals."""

from typing import Any

import pytest

from sluice.broker.server.metrics import registry
from sluice.protocol.apis.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.records import produce
from tests.support.virtual_broker import Answer, Client, VirtualBroker

HIGH_WATERMARK = -1
Result = tuple[int, int]  # low watermark, error code


def request(offsets: dict[tuple[str, int], int], timeout_ms: int = 60_000) -> DeleteRecordsRequest:
    """Deletes what is before each offset, by (topic, partition)."""
    return DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)])
            for (name, index), offset in offsets.items()
        ],
        timeout_ms=timeout_ms,
    )


def results(message: Any) -> dict[tuple[str, int], Result]:
    return {
        (topic.name, one.partition_index): (one.low_watermark, one.error_code)
        for topic in message.topics
        for one in topic.partitions
    }


def broker_with_records(*overrides: str) -> VirtualBroker:
    """t-0 has offsets 0 to 4, all replicated."""
    broker = VirtualBroker(*overrides)
    broker.topic(partitions=2)
    for _ in range(5):
        broker.client().ask(produce(9), 9)
    broker.advance(1000)
    return broker


@pytest.mark.parametrize(
    ("offset", "result"),
    [
        pytest.param(2, (2, 0), id="some of them"),
        pytest.param(HIGH_WATERMARK, (5, 0), id="all that consumers can read"),
        pytest.param(5, (5, 0), id="up to the high watermark"),
        pytest.param(0, (0, 0), id="none of them"),
        pytest.param(6, (-1, ErrorCode.OFFSET_OUT_OF_RANGE), id="beyond the high watermark"),
        pytest.param(-2, (-1, ErrorCode.OFFSET_OUT_OF_RANGE), id="negative offset"),
    ],
)
@pytest.mark.parametrize("version", range(3))
def test_records_before_an_offset_go(version: int, offset: int, result: Result) -> None:
    broker = broker_with_records()
    assert results(broker.client().ask(request({("t", 0): offset}), version)) == {("t", 0): result}
    assert broker.partition().log.log_start_offset == max(0, result[0])


def test_what_is_gone_does_not_come_back() -> None:
    client = broker_with_records().client()
    client.ask(request({("t", 0): 3}), 2)
    assert results(client.ask(request({("t", 0): 1}), 2)) == {("t", 0): (3, 0)}


def test_of_a_partition_given_twice_the_last_offset_holds() -> None:
    broker = broker_with_records()
    twice = DeleteRecordsRequest(topics=request({("t", 0): 1}).topics + request({("t", 0): 9}).topics)
    assert results(broker.client().ask(twice, 2)) == {("t", 0): (-1, ErrorCode.OFFSET_OUT_OF_RANGE)}
    assert broker.partition().log.log_start_offset == 0


@pytest.mark.parametrize(
    ("name", "index", "code"),
    [
        pytest.param("nowhere", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="unknown topic"),
        pytest.param("t", 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="unknown partition"),
        pytest.param("compacted", 0, ErrorCode.POLICY_VIOLATION, id="topic that is only compacted"),
        pytest.param("__consumer_offsets", 0, ErrorCode.INVALID_TOPIC_EXCEPTION, id="one of Kafka's own topics"),
    ],
)
def test_what_cannot_be_deleted_is_refused_and_the_rest_goes(name: str, index: int, code: ErrorCode) -> None:
    broker = broker_with_records()
    broker.topic("compacted", cleanup_policy="compact")
    broker.broker.cluster.internal_topic("__consumer_offsets")
    response = broker.client().ask(request({("t", 0): 2, (name, index): 0}), 2)
    assert results(response) == {("t", 0): (2, 0), (name, index): (-1, code)}


def test_a_topic_that_is_compacted_and_deleted_lets_records_go() -> None:
    broker = VirtualBroker()
    broker.topic(cleanup_policy="compact,delete")
    assert results(broker.client().ask(request({("t", 0): HIGH_WATERMARK}), 2)) == {("t", 0): (0, 0)}


class TestWithReplicas:
    """`sluice.replication.delay.ms`: the replicas follow 100 ms later."""

    @staticmethod
    def asked(timeout_ms: int) -> tuple[VirtualBroker, Client]:
        broker = broker_with_records("sluice.replication.delay.ms=100")
        client = broker.client()
        client.send(request({("t", 0): 3, ("t", 1): 0, ("nowhere", 0): 0}, timeout_ms), 2)
        assert (client.answers, broker.broker.replicas.delete_records.delayed) == ([], 1)
        waiting = registry(broker.cluster_server).get_sample_value
        assert waiting("sluice_purgatory_operations", {"kind": "DeleteRecords"}) == 1
        return broker, client

    @staticmethod
    def answered(broker: VirtualBroker, client: Client, asked_ms: float) -> tuple[float, dict[tuple[str, int], Result]]:
        answer: Answer = client.answer()
        assert broker.broker.replicas.delete_records.delayed == 0
        return answer.at_ms - asked_ms, results(answer.message)

    def test_the_answer_waits_for_them(self) -> None:
        broker, client = self.asked(timeout_ms=5000)
        asked_ms = broker.now_ms
        broker.advance(1000)
        settled = {("t", 0): (3, 0), ("t", 1): (0, 0), ("nowhere", 0): (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
        assert self.answered(broker, client, asked_ms) == (100, settled)

    def test_out_of_time_it_says_so_and_what_is_deleted_stays_deleted(self) -> None:
        broker, client = self.asked(timeout_ms=40)
        asked_ms = broker.now_ms
        broker.advance(40)
        after_ms, found = self.answered(broker, client, asked_ms)
        assert (after_ms, found["t", 0]) == (40, (0, ErrorCode.REQUEST_TIMED_OUT))
        assert found["t", 1] == (0, 0)
        assert broker.partition().log.log_start_offset == 3

    def test_it_is_answered_when_the_topic_goes(self) -> None:
        broker, client = self.asked(timeout_ms=5000)
        asked_ms = broker.now_ms
        broker.client().ask(DeleteTopicsRequest(topic_names=["t"]), 5)
        after_ms, found = self.answered(broker, client, asked_ms)
        assert (after_ms, found["t", 0]) == (0, (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

    def test_what_is_not_replicated_cannot_be_deleted(self) -> None:
        broker = VirtualBroker("sluice.replication.delay.ms=100")
        broker.topic()
        client = broker.client()
        client.ask(produce(9), 9)
        found = results(client.ask(request({("t", 0): 1}), 2))
        assert found == {("t", 0): (-1, ErrorCode.OFFSET_OUT_OF_RANGE)}
