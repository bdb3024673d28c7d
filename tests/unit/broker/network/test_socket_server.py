"""The socket server: advertised addresses, idle connections, periodic tasks, and refused connections."""

import pytest

from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.records import batch, fetch, produce, produce_of
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

IDLE_MS = 10_000
# The interval of the idle check.
CHECK_MS = IDLE_MS // 10


def test_idle_connection_is_closed_without_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    broker = VirtualBroker(f"connections.max.idle.ms={IDLE_MS}")
    idle, busy = broker.client(), broker.client()
    for _ in range(4):
        busy.call(ApiVersionsRequest(), 0)
        broker.advance(IDLE_MS // 2)
    assert idle.closed_at_ms is not None
    assert IDLE_MS < idle.closed_at_ms <= IDLE_MS + CHECK_MS + 1
    assert busy.is_open
    assert caplog.records == []


def test_connection_that_waits_or_is_throttled_for_longer_than_the_idle_time_is_closed() -> None:
    broker = broker_with_topic(f"connections.max.idle.ms={IDLE_MS}", "quota.producer.default=1000", partitions=2)
    consumer, producer = broker.client(), broker.client()
    consumer.send(fetch(0, partition=1, max_wait_ms=2 * IDLE_MS), 11)
    producer.send(produce_of(34_999, 9, "client"), 9)
    broker.advance(IDLE_MS)
    assert [client.is_open for client in (consumer, producer)] == [True, True]
    broker.advance(CHECK_MS + 1)
    assert [client.is_open for client in (consumer, producer)] == [False, False]


def test_negative_idle_time_closes_no_connection() -> None:
    broker = VirtualBroker("connections.max.idle.ms=-1")
    idle = broker.client()
    broker.advance(100_000_000)
    assert idle.is_open


def test_idle_connection_with_unsent_responses_is_aborted() -> None:
    broker = broker_with_topic("connections.max.idle.ms=10000")
    client = broker.client()
    client.call(produce_of(500_000, 9, "client"), 9)
    client.stop_reading()
    client.send(fetch(0), 11)
    broker.advance(10_000 + 2 * CHECK_MS)
    assert client.closed_at_ms is not None, "unsent responses do not keep an idle connection open"
    assert client.transport.aborted


@pytest.mark.parametrize("controlled", [True, False], ids=["stops", "crashes"])
@pytest.mark.parametrize("overrides", [[], ["max.connections=10"]], ids=["without limits", "with a connection limit"])
def test_connection_accepted_just_before_its_broker_stops_is_closed(overrides: list[str], controlled: bool) -> None:
    broker = VirtualBroker(*overrides)
    (port,) = broker.loop.factories
    accept = broker.loop.factories[port]
    accepted = accept()  # the loop calls connection_made in its next iteration
    broker.cluster_server.stop_broker(1, controlled=controlled)
    for connect in (lambda: accepted, accept):
        broker.loop.factories[port] = connect
        client = broker.client()
        client.send(ApiVersionsRequest(), 0)
        assert not client.responses
        assert client.closed_at_ms is not None
    assert not broker.server.connections


def test_metadata_returns_the_bound_port(broker: VirtualBroker) -> None:
    (endpoint,) = broker.server.endpoints
    assert endpoint.port > 0
    (advertised,) = broker.client().call(MetadataRequest(topics=[]), 9).brokers
    assert (advertised.host, advertised.port) == ("127.0.0.1", endpoint.port)


def test_metadata_returns_the_advertised_address() -> None:
    broker = VirtualBroker("advertised.listeners=PLAINTEXT://kafka.example:29092")
    (advertised,) = broker.client().call(MetadataRequest(topics=[]), 9).brokers
    assert (advertised.host, advertised.port) == ("kafka.example", 29092)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", ""])
def test_metadata_of_a_wildcard_listener_returns_the_address_that_the_client_used(host: str) -> None:
    broker = VirtualBroker(f"listeners=PLAINTEXT://{host}:0")
    (advertised,) = broker.client().call(MetadataRequest(topics=[]), 9).brokers
    assert advertised.host == "127.0.0.1"


def test_topic_ids_are_derived_from_the_seed() -> None:
    one, other = VirtualBroker().topic(), VirtualBroker().topic()
    assert one.topic_id == other.topic_id


def test_scheduler_enforces_retention() -> None:
    times = ("log.initial.task.delay.ms=5000", "log.retention.check.interval.ms=10000")
    broker = broker_with_topic("log.retention.ms=1000", *times)
    for number, next_check_ms in enumerate((5_000, 10_000, 10_000)):
        broker.client().call(produce(9), 9)
        broker.advance(next_check_ms - 1)
        assert broker.partition().log.log_start_offset == number
        broker.advance(1)
        assert broker.partition().log.log_start_offset == number + 1


def test_scheduler_removes_expired_producers() -> None:
    broker = broker_with_topic("producer.id.expiration.ms=1000", "producer.id.expiration.check.interval.ms=3000")
    broker.client().call(produce(9, batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0)), 9)
    broker.advance(2_999)
    assert [producer_id for producer_id, _ in broker.partition().log.producers] == [7]
    broker.advance(1)
    assert list(broker.partition().log.producers) == []


def test_scheduler_removes_quota_state_of_clients_after_an_idle_hour() -> None:
    broker = broker_with_topic("quota.producer.default=1000")
    broker.client().call(produce(9), 9)
    broker.advance(3_600_000)
    assert len(broker.broker.quotas.produce.snapshot(broker.clock.wall_ms())) == 1
    broker.advance(30_000)
    assert broker.broker.quotas.produce.snapshot(broker.clock.wall_ms()) == []


def test_listener_accepts_again_after_every_refusal_ended_and_keeps_its_connections(broker: VirtualBroker) -> None:
    before = broker.client()
    (endpoint,) = broker.server.endpoints
    ends = [broker.server.refuse("PLAINTEXT"), broker.server.refuse("PLAINTEXT")]
    assert endpoint.port not in broker.loop.factories
    before.call(ApiVersionsRequest(), 0)
    ends[0]()
    assert endpoint.port not in broker.loop.factories, "connections are refused until the last refusal ends"
    ends[1]()
    broker.settle()
    broker.client().call(ApiVersionsRequest(), 0)


def test_refusal_that_ends_after_its_server_closed_opens_no_port(broker: VirtualBroker) -> None:
    (endpoint,) = broker.server.endpoints
    end = broker.server.refuse("PLAINTEXT")
    broker.server.close()
    end()
    broker.settle()
    assert endpoint.port not in broker.loop.factories
