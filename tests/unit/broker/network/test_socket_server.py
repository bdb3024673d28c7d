"""The server: who is told which address, and which connections are idle."""

import pytest

from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.records import fetch, produce, produce_of
from tests.support.virtual_broker import VirtualBroker

# How often it looks.
CHECK_MS = 5_000


def test_an_idle_connection_is_closed_silently(caplog: pytest.LogCaptureFixture) -> None:
    broker = VirtualBroker("connections.max.idle.ms=10000")
    idle, busy = broker.client(), broker.client()
    for _ in range(4):
        busy.ask(ApiVersionsRequest(), 0)
        broker.advance(CHECK_MS)
    assert idle.closed_at_ms is not None
    assert 10_000 < idle.closed_at_ms <= 10_000 + CHECK_MS + 1
    assert busy.is_open
    assert caplog.records == []


def test_a_negative_idle_time_closes_nobody() -> None:
    broker = VirtualBroker("connections.max.idle.ms=-1")
    idle = broker.client()
    broker.advance(100_000_000)
    assert idle.is_open


def test_a_connection_whose_request_waits_is_not_idle_and_neither_is_it_when_the_wait_is_over() -> None:
    broker = VirtualBroker("connections.max.idle.ms=10000", "quota.producer.default=1000")
    broker.topic(partitions=2)
    consumer, producer = broker.client(), broker.client()
    consumer.send(fetch(0, partition=1, max_wait_ms=24_999), 11)
    producer.send(produce_of(34_999, 9, "client"), 9)
    broker.advance(25_001)
    assert consumer.answer().at_ms == 24_999
    assert consumer.is_open, "closed as idle 1 ms after it was answered"
    assert producer.is_open
    broker.advance(9_000)
    assert consumer.is_open
    broker.advance(10_000)
    assert not consumer.is_open


def test_an_idle_client_that_takes_no_answers_is_cut() -> None:
    broker = VirtualBroker("connections.max.idle.ms=10000")
    broker.topic()
    client = broker.client()
    client.ask(produce_of(500_000, 9, "client"), 9)
    client.stop_reading()
    client.send(fetch(0), 11)
    broker.advance(10_000 + 2 * CHECK_MS)
    assert client.closed_at_ms is not None, "what it never takes kept its connection open"
    assert client.transport.aborted


@pytest.mark.parametrize("controlled", [True, False], ids=["stops", "crashes"])
@pytest.mark.parametrize("overrides", [[], ["max.connections=10"]], ids=["nothing is limited", "connections are"])
def test_a_client_that_was_accepted_just_before_its_broker_ends_is_cut(overrides: list[str], controlled: bool) -> None:
    broker = VirtualBroker(*overrides)
    (port,) = broker.loop.factories
    accept = broker.loop.factories[port]
    accepted = accept()  # the loop tells a connection in its next turn that it is made
    broker.cluster_server.stop_broker(1, controlled=controlled)
    for connect in (lambda: accepted, accept):
        broker.loop.factories[port] = connect
        client = broker.client()
        client.send(ApiVersionsRequest(), 0)
        assert not client.answers
        assert client.closed_at_ms is not None
    assert not broker.server.connections


def test_clients_are_told_the_port_that_was_bound() -> None:
    broker = VirtualBroker()
    (endpoint,) = broker.server.endpoints
    assert endpoint.port > 0
    (told,) = broker.client().ask(MetadataRequest(topics=[]), 9).brokers
    assert (told.host, told.port) == ("127.0.0.1", endpoint.port)


def test_clients_are_told_the_advertised_address_instead() -> None:
    broker = VirtualBroker("advertised.listeners=PLAINTEXT://kafka.example:29092")
    (told,) = broker.client().ask(MetadataRequest(topics=[]), 9).brokers
    assert (told.host, told.port) == ("kafka.example", 29092)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", ""])
def test_a_listener_on_every_address_tells_the_one_the_client_came_to(host: str) -> None:
    broker = VirtualBroker(f"listeners=PLAINTEXT://{host}:0")
    (told,) = broker.client().ask(MetadataRequest(topics=[]), 9).brokers
    assert told.host == "127.0.0.1"


def test_producer_ids_and_topic_ids_come_from_the_seed() -> None:
    one, other = VirtualBroker().topic(), VirtualBroker().topic()
    assert one.topic_id == other.topic_id


def test_the_scheduler_drops_what_retention_does_not_keep() -> None:
    broker = VirtualBroker("log.retention.ms=1000", "log.retention.check.interval.ms=10000")
    broker.topic()
    broker.client().ask(produce(9), 9)
    broker.advance(9_999)
    assert broker.partition().log.log_start_offset == 0
    broker.advance(1)
    assert broker.partition().log.log_start_offset == 1


def test_the_scheduler_removes_clients_that_were_silent_for_an_hour() -> None:
    broker = VirtualBroker("quota.producer.default=1000")
    broker.topic()
    broker.client().ask(produce(9), 9)
    broker.advance(3_600_000)
    assert len(broker.broker.quotas.produce.snapshot(broker.clock.wall_ms())) == 1
    broker.advance(30_000)
    assert broker.broker.quotas.produce.snapshot(broker.clock.wall_ms()) == []


def test_a_listener_that_refuses_keeps_its_clients_until_every_refusal_has_ended() -> None:
    broker = VirtualBroker()
    before = broker.client()
    (endpoint,) = broker.server.endpoints
    ends = [broker.server.refuse("PLAINTEXT"), broker.server.refuse("PLAINTEXT")]
    assert endpoint.port not in broker.loop.factories
    before.ask(ApiVersionsRequest(), 0)
    ends[0]()
    assert endpoint.port not in broker.loop.factories, "one refusal is left"
    ends[1]()
    broker.settle()
    broker.client().ask(ApiVersionsRequest(), 0)


def test_a_refusal_that_ends_after_its_server_opens_no_port() -> None:
    broker = VirtualBroker()
    (endpoint,) = broker.server.endpoints
    end = broker.server.refuse("PLAINTEXT")
    broker.server.close()
    end()
    broker.settle()
    assert endpoint.port not in broker.loop.factories
