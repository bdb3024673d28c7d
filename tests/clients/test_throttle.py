"""Real clients are told how long they are throttled, and clients of the time of KIP-13 are held."""

from collections.abc import Iterator
from time import monotonic

import kafka
import pytest
from confluent_kafka import Consumer, Producer, ThrottleEvent, TopicPartition

from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.clients.driver import TIMEOUT_S
from tests.support.broker_process import BrokerProcess, overrides, running_broker
from tests.support.records import batch_of, fetch, fetched_bytes, produce, produce_of
from tests.support.wire import WireClient

# One whole window of one second: an idle client may have 100,000 bytes at once, and each 1,000 more wait 10 ms.
QUOTAS = (
    "quota.window.num=2",
    "quota.producer.override=slow:100000,new:100000,old-produce-0:100000,old-produce-1:100000,old-produce-5:100000",
    "quota.consumer.override=slow:100000,old-fetch-0:100000,old-fetch-1:100000,old-fetch-7:100000",
)
VALUE = bytes(60_000)


@pytest.fixture(scope="module")
def quota_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker on which some client ids have a quota of 100,000 bytes/s, and `free` has none."""
    with running_broker(tmp_path_factory.mktemp("quota") / "log", *overrides(*QUOTAS)) as process:
        yield process
        assert process.stop()[0] == 0


def throttled_s(broker: BrokerProcess, resource: str, client_id: str) -> float:
    """Throttle time of a client in all, as the metrics have it."""
    samples = broker.metrics()["sluice_throttle_seconds"].samples
    labels = {"resource": resource, "user": "", "client_id": client_id}
    return sum(sample.value for sample in samples if sample.name.endswith("_total") and sample.labels == labels)


# -- producers ---------------------------------------------------------------------------------------------------------


def confluent_produce(broker: BrokerProcess, topic: str, client_id: str) -> list[float]:
    """Produces 180,000 bytes; returns the throttle times that were told, s."""
    events: list[ThrottleEvent] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": client_id, "throttle_cb": events.append})
    for _ in range(3):
        producer.produce(topic, VALUE)
        assert producer.flush(TIMEOUT_S) == 0
    producer.poll(0)
    return [event.throttle_time for event in events]


def test_confluent_kafka_tells_its_application_that_its_producer_is_throttled(
    quota_broker: BrokerProcess, topic: str
) -> None:
    before = throttled_s(quota_broker, "Produce", "slow")
    told = [seconds for seconds in confluent_produce(quota_broker, topic, "slow") if seconds]
    assert told
    assert sum(told) == pytest.approx(throttled_s(quota_broker, "Produce", "slow") - before)


def test_confluent_kafka_without_a_quota_is_told_nothing(quota_broker: BrokerProcess, topic: str) -> None:
    assert confluent_produce(quota_broker, topic, "free") == []


def kafka_python_produce(broker: BrokerProcess, topic: str, client_id: str) -> float:
    """Produces 180,000 bytes; returns the longest throttle time that was told, ms."""
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, client_id=client_id)
    try:
        for _ in range(3):
            producer.send(topic, VALUE).get(timeout=TIMEOUT_S)
        longest = producer.metrics()["producer-metrics"]["throttle-time-max"]
    finally:
        producer.close()
    assert isinstance(longest, float)
    return longest


def test_kafka_python_measures_how_its_producer_is_throttled(quota_broker: BrokerProcess, topic: str) -> None:
    assert kafka_python_produce(quota_broker, topic, "slow") >= 500
    assert kafka_python_produce(quota_broker, topic, "free") == 0


# -- consumers ---------------------------------------------------------------------------------------------------------


def filled(broker: BrokerProcess, topic: str) -> None:
    """Three batches of 60,000 bytes."""
    with WireClient(broker.bootstrap, "free") as client:
        client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9)
        for _ in range(3):
            request = produce_of(60_000, 9, "free", topic=topic)
            assert client.ask(request, 9).responses[0].partition_responses[0].error_code == 0


def confluent_consume(broker: BrokerProcess, topic: str, client_id: str) -> list[float]:
    """Consumes 180,000 bytes; returns the throttle times that were told, s."""
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


def test_confluent_kafka_tells_its_application_that_its_consumer_is_throttled(
    quota_broker: BrokerProcess, topic: str
) -> None:
    filled(quota_broker, topic)
    told = [seconds for seconds in confluent_consume(quota_broker, topic, "slow") if seconds]
    assert sum(told) > 0.1
    assert confluent_consume(quota_broker, topic, "free") == []


# -- clients of the time of KIP-13 -------------------------------------------------------------------------------------


@pytest.mark.realtime
@pytest.mark.parametrize("version", [0, 1, 5])
def test_an_old_producer_gets_its_answer_when_its_throttle_is_over(
    version: int, quota_broker: BrokerProcess, topic: str
) -> None:
    client_id = f"old-produce-{version}"
    with WireClient(quota_broker.bootstrap, client_id) as client:
        client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 0)
        request = produce_of(150_000, version, client_id, topic=topic)
        started = monotonic()
        response = client.ask(request, version)
        waited_s = monotonic() - started
    assert response.responses[0].partition_responses[0].error_code == 0
    assert response.throttle_time_ms == (500 if version else 0), "version 0 has no field for it"
    assert 0.5 <= waited_s < 1


@pytest.mark.realtime
@pytest.mark.parametrize("version", [0, 1, 7])
def test_an_old_consumer_gets_its_records_when_its_throttle_is_over(
    version: int, quota_broker: BrokerProcess, topic: str
) -> None:
    with WireClient(quota_broker.bootstrap, "free") as producer:
        producer.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 0)
        producer.ask(produce(9, batch_of(150_000), topic=topic), 9)
    with WireClient(quota_broker.bootstrap, f"old-fetch-{version}") as client:
        started = monotonic()
        response = client.ask(fetch(0, topic=topic), version)
        waited_s = monotonic() - started
    assert len(fetched_bytes(response)) > 149_000
    assert response.throttle_time_ms == (500 if version else 0), "version 0 has no field for it"
    assert 0.5 <= waited_s < 1


@pytest.mark.realtime
def test_a_client_that_throttles_itself_is_answered_at_once_and_read_when_its_throttle_is_over(
    quota_broker: BrokerProcess, topic: str
) -> None:
    with WireClient(quota_broker.bootstrap, "new") as client:
        client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9)
        request = produce_of(150_000, 9, "new", topic=topic)
        started = monotonic()
        assert client.ask(request, 9).throttle_time_ms == 500
        answered_s = monotonic() - started
        client.ask(MetadataRequest(topics=[]), 9)
        waited_s = monotonic() - started
    assert answered_s < 0.25
    assert 0.5 <= waited_s < 1
