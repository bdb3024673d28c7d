"""Real clients report the throttle times of the metrics and of the journal.

tests/integration/broker/throttling checks the delayed responses to clients before KIP-219.
"""

import json
from collections.abc import Iterator
from time import monotonic

import kafka
import pytest
from confluent_kafka import Consumer, Producer, ThrottleEvent, TopicPartition

from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.clients.driver import TIMEOUT_S, until
from tests.support.broker_process import BrokerProcess, overrides, running_broker, running_proxy
from tests.support.records import produce_of
from tests.support.wire import WireClient

# One window of one second: an idle client may send 100,000 bytes at once, and each 1,000 more cost 10 ms.
QUOTAS = (
    "quota.window.num=2",
    "sluice.journal.events=4096",
    "quota.producer.override=slow:100000",
    "quota.consumer.override=slow:100000",
)
VALUE = bytes(60_000)


@pytest.fixture(scope="module")
def quota_broker(tmp_path_factory: pytest.TempPathFactory, upstream: str | None) -> Iterator[BrokerProcess]:
    """A broker or proxy with a quota of 100,000 bytes/s for some client ids, and none for `free`."""
    log, quotas = tmp_path_factory.mktemp("quota") / "log", overrides(*QUOTAS)
    with running_broker(log, *quotas) if upstream is None else running_proxy(log, upstream, *quotas) as process:
        yield process
        assert process.stop()[0] == 0


def throttled_s(broker: BrokerProcess, resource: str, client_id: str) -> float:
    """Return a client's total throttle time from the metrics."""
    samples = broker.metrics()["sluice_throttle_seconds"].samples
    labels = {"resource": resource, "user": "", "client_id": client_id}
    return sum(
        sample.value  # at a proxy, with the broker
        for sample in samples
        if sample.name.endswith("_total") and labels.items() <= sample.labels.items()
    )


def journaled_ms(broker: BrokerProcess, client_id: str) -> list[int]:
    """Return the throttle times of a client from the journal."""
    found = json.loads(broker.get(f"/api/v1/journal?kind=throttle&client_id={client_id}&limit=10000"))
    return [event["throttle_time_ms"] for event in found["events"]]


# -- producers ---------------------------------------------------------------------------------------------------------


def confluent_produce(broker: BrokerProcess, topic: str, client_id: str) -> list[float]:
    """Produce 180,000 bytes; return the reported throttle times in s."""
    events: list[ThrottleEvent] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": client_id, "throttle_cb": events.append})
    for _ in range(3):
        producer.produce(topic, VALUE)
        assert producer.flush(TIMEOUT_S) == 0
    producer.poll(0)
    return [event.throttle_time for event in events]


def test_confluent_kafka_reports_the_throttle_time_of_its_producer(quota_broker: BrokerProcess, topic: str) -> None:
    before, journaled = throttled_s(quota_broker, "Produce", "slow"), len(journaled_ms(quota_broker, "slow"))
    reported = [seconds for seconds in confluent_produce(quota_broker, topic, "slow") if seconds]
    assert reported
    assert journaled_ms(quota_broker, "slow")[journaled:] == [round(seconds * 1000) for seconds in reported]
    assert sum(reported) == pytest.approx(throttled_s(quota_broker, "Produce", "slow") - before)


def test_confluent_kafka_without_a_quota_reports_no_throttle_time(quota_broker: BrokerProcess, topic: str) -> None:
    assert confluent_produce(quota_broker, topic, "free") == []


def kafka_python_produce(broker: BrokerProcess, topic: str, client_id: str) -> float:
    """Produce 180,000 bytes; return the longest reported throttle time in ms."""
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, client_id=client_id)
    try:
        for _ in range(3):
            producer.send(topic, VALUE).get(timeout=TIMEOUT_S)
        longest = producer.metrics()["producer-metrics"]["throttle-time-max"]
    finally:
        producer.close()
    assert isinstance(longest, float)
    return longest


def test_kafka_python_measures_the_throttle_time_of_its_producer(quota_broker: BrokerProcess, topic: str) -> None:
    before, journaled = throttled_s(quota_broker, "Produce", "slow"), len(journaled_ms(quota_broker, "slow"))
    longest = kafka_python_produce(quota_broker, topic, "slow")
    assert max(journaled_ms(quota_broker, "slow")[journaled:]) == longest
    total = (throttled_s(quota_broker, "Produce", "slow") - before) * 1000
    assert 0 < total / 3 <= longest <= total + 1, "of three responses"
    assert kafka_python_produce(quota_broker, topic, "free") == 0


# -- consumers ---------------------------------------------------------------------------------------------------------


def filled(broker: BrokerProcess, topic: str) -> None:
    """Produce three batches of 60,000 bytes."""
    with WireClient(broker.bootstrap, "free") as client:
        create = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        assert until(lambda: client.call(create, 9).topics[0].error_code, 0) == 0  # Kafka creates it after a response
        for _ in range(3):
            request = produce_of(60_000, 9, "free", topic=topic)
            assert client.call(request, 9).responses[0].partition_responses[0].error_code == 0


def confluent_consume(broker: BrokerProcess, topic: str, client_id: str) -> list[float]:
    """Consume 180,000 bytes; return the reported throttle times in s."""
    events: list[ThrottleEvent] = []
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "client.id": client_id,
            "group.id": "unused",
            "enable.auto.commit": False,
            "throttle_cb": events.append,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        deadline, records = monotonic() + TIMEOUT_S, 0
        while records < 3:
            assert monotonic() < deadline, f"{records} of 3 records"
            message = consumer.poll(0.2)
            if message is not None:
                assert message.error() is None, message.error()
                records += 1
        consumer.poll(0)
    finally:
        consumer.close()
    return [event.throttle_time for event in events]


def test_confluent_kafka_reports_the_throttle_time_of_its_consumer(quota_broker: BrokerProcess, topic: str) -> None:
    filled(quota_broker, topic)
    reported = [seconds for seconds in confluent_consume(quota_broker, topic, "slow") if seconds]
    assert sum(reported) > 0.1
    assert confluent_consume(quota_broker, topic, "free") == []


# -- clients before KIP-219 --------------------------------------------------------------------------------------------
