"""The shaped transport below a connection: limited, held, or dropped."""

import pytest

from sluice.broker.network.shaped_transport import PIECE_MS, ShapedTransport, shape_transport
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.records import fetch, produce_of
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic

RATE = 10_000


@pytest.fixture
def broker() -> VirtualBroker:
    return broker_with_topic()


def shaped(client: Client) -> ShapedTransport:
    transport = shape_transport(client.connection, client.broker.broker)
    assert transport is not None
    return transport


def test_connection_keeps_its_shaped_transport(client: Client) -> None:
    assert shaped(client) is shaped(client)


def test_closed_connection_gets_no_shaped_transport(client: Client, broker: VirtualBroker) -> None:
    client.leave()
    assert shape_transport(client.connection, broker.broker) is None


def test_shaped_transport_without_limits_changes_nothing(client: Client, broker: VirtualBroker) -> None:
    shaped(client)
    for _ in range(3):
        assert client.exchange(ApiVersionsRequest(), 0).at_ms == broker.now_ms
    client.leave()
    assert client.connection.closed


# -- limited -----------------------------------------------------------------------------------------------------------


def test_duration_of_a_response_follows_the_send_rate(client: Client, broker: VirtualBroker) -> None:
    client.call(produce_of(50_000, 9, "client"), 9)
    shaped(client).limit(None, RATE)
    began_ms = broker.now_ms
    client.send(fetch(0), 11)
    broker.advance(10_000)
    response = client.response()
    assert response.at_ms - began_ms == pytest.approx(response.size / RATE * 1e3, abs=60)


def test_limited_responses_are_sent_at_a_steady_rate(client: Client, broker: VirtualBroker) -> None:
    client.call(produce_of(50_000, 9, "client"), 9)
    shaped(client).limit(None, RATE)
    client.send(fetch(0), 11)
    sent = len(client.transport.writes)
    for _ in range(20):
        broker.advance(100)
        pieces = client.transport.writes[sent:]
        sent += len(pieces)
        assert max(map(len, pieces)) <= RATE * PIECE_MS / 1e3
        assert sum(map(len, pieces)) == pytest.approx(RATE / 10, abs=150)


def test_duration_of_a_request_follows_the_receive_rate_with_back_pressure(broker: VirtualBroker) -> None:
    client = broker.client()
    shaped(client).limit(RATE, None)
    began_ms = broker.now_ms
    request = client.frame(produce_of(50_000, 9, "client"), 9)
    client.send_bytes(request)
    broker.advance(2_000)
    assert client.unread_bytes == pytest.approx(len(request) - 2 * RATE, abs=1_000)
    assert not client.responses
    broker.advance(8_000)
    assert client.response().at_ms - began_ms == pytest.approx(len(request) / RATE * 1e3, abs=60)


def test_limit_of_one_byte_per_second_makes_progress(client: Client, broker: VirtualBroker) -> None:
    shaped(client).limit(1, None)
    size = len(client.frame(ApiVersionsRequest(), 0))
    client.send(ApiVersionsRequest(), 0)
    broker.advance((size - 2) * 1_000)
    assert not client.responses
    broker.advance(2_000)
    assert client.response()


def test_removed_limit_releases_delayed_bytes(client: Client, broker: VirtualBroker) -> None:
    client.call(produce_of(50_000, 9, "client"), 9)
    remove_limit = shaped(client).limit(RATE, RATE)
    client.send(fetch(0), 11)
    broker.advance(100)
    assert not client.responses
    remove_limit()
    assert client.response()
    client.call(produce_of(50_000, 9, "client"), 9)


def test_requests_wait_while_earlier_responses_are_unsent(client: Client, broker: VirtualBroker) -> None:
    client.call(produce_of(200_000, 9, "client"), 9)
    shaped(client).limit(None, 100_000)
    for request, version in ((fetch(0), 11), (MetadataRequest(topics=[]), 9), (produce_of(200, 9, "client"), 9)):
        client.send(request, version)
    broker.advance(1_000)
    assert broker.partition().log.log_end_offset == 1, "a request is not handled while earlier responses are unsent"
    broker.advance(1_500)
    assert [response.api for response in client.take_responses()] == ["Fetch", "Metadata", "Produce"]


def test_half_closed_connection_sends_pending_bytes_before_it_closes(client: Client, broker: VirtualBroker) -> None:
    client.call(produce_of(30_000, 9, "client"), 9)
    shaped(client).limit(None, RATE)
    client.send(fetch(0), 11)
    client.end()
    broker.advance(1_000)
    assert client.is_open
    broker.advance(3_000)
    assert client.response()
    assert not client.is_open


def test_slowest_of_several_limits_applies_until_it_is_removed(client: Client, broker: VirtualBroker) -> None:
    transport = shaped(client)
    transport.limit(RATE, None)
    remove_limit = transport.limit(1, None)
    client.send(produce_of(10_000, 9, "client"), 9)
    broker.advance(10_000)
    assert not client.responses
    remove_limit()
    broker.advance(1_100)
    assert client.response()


def test_connection_closed_during_a_limited_response_handles_no_more_requests(broker: VirtualBroker) -> None:
    client = broker.client()
    client.call(produce_of(30_000, 9, "client"), 9)
    shaped(client).limit(None, RATE)
    client.send(fetch(0), 11)
    client.connection.abort()
    client.send(produce_of(200, 9, "client"), 9)
    broker.advance(5_000)
    assert client.closed_at_ms is not None
    assert broker.partition().log.log_end_offset == 1


# -- held --------------------------------------------------------------------------------------------------------------


def test_held_connection_handles_no_request_until_released(client: Client, broker: VirtualBroker) -> None:
    transport = shaped(client)
    transport.hold()
    client.send(ApiVersionsRequest(), 0)
    broker.advance(60_000)
    assert (client.responses, client.is_open) == ([], True)
    transport.release()
    broker.settle()
    assert client.response()


def test_responses_of_a_held_connection_wait_until_released(client: Client, broker: VirtualBroker) -> None:
    client.send(fetch(0, max_wait_ms=100), 11)
    transport = shaped(client)
    transport.hold()
    broker.advance(1_000)
    assert not client.responses
    transport.release()
    assert client.response()


def test_disconnect_of_a_held_connection_is_noticed(broker: VirtualBroker) -> None:
    for disconnect in (Client.leave, Client.end):
        client = broker.client()
        shaped(client).hold()
        client.send(produce_of(200, 9, "client"), 9)
        disconnect(client)
        assert not broker.server.connections
    assert broker.partition().log.log_end_offset == 0


def test_held_connection_applies_back_pressure(client: Client, broker: VirtualBroker) -> None:
    transport = shaped(client)
    transport.hold()
    for _ in range(5):
        client.send(produce_of(50_000, 9, "client"), 9)
    assert client.unread_bytes > 100_000, "a held connection is not read"
    transport.release()
    broker.advance(0)
    assert len(client.take_responses()) == 5


def test_connection_held_twice_continues_after_two_releases(client: Client, broker: VirtualBroker) -> None:
    transport = shaped(client)
    transport.hold()
    transport.hold()
    client.send(ApiVersionsRequest(), 0)
    transport.release()
    broker.settle()
    assert not client.responses
    transport.release()
    broker.settle()
    assert client.response()


def test_requests_received_while_held_are_throttled_after_the_release() -> None:
    broker = broker_with_topic("quota.producer.default=1000")
    client = broker.client()
    transport = shaped(client)
    transport.hold()
    for _ in range(2):
        client.send(produce_of(20_000, 9, "client"), 9)
    transport.release()
    broker.settle()
    throttle_ms = client.response().throttle_time_ms
    assert throttle_ms > 0
    broker.advance(throttle_ms)
    assert client.response().at_ms == throttle_ms


def test_close_of_a_held_connection_takes_effect_at_the_release(client: Client, broker: VirtualBroker) -> None:
    transport = shaped(client)
    transport.hold()
    client.connection.abort()
    broker.advance(1_000)
    assert client.is_open
    transport.release()
    assert not client.is_open


def test_cut_of_a_held_connection_takes_effect_immediately(client: Client, broker: VirtualBroker) -> None:
    shaped(client).hold()
    client.connection.cut()
    broker.settle()
    assert client.closed_at_ms is not None
    assert not broker.server.connections


# -- dropped -----------------------------------------------------------------------------------------------------------


def test_dropped_connection_sends_no_response_and_stays_open(client: Client, broker: VirtualBroker) -> None:
    client.send(fetch(0, max_wait_ms=100), 11)
    shaped(client).drop()
    client.send(ApiVersionsRequest(), 0)
    broker.advance(60_000)
    assert (client.responses, client.is_open) == ([], True)
    assert client.unread_bytes == 0, "a dropped transport discards received bytes"


def test_request_on_a_dropped_connection_is_not_handled(client: Client, broker: VirtualBroker) -> None:
    shaped(client).drop()
    client.send(produce_of(200, 9, "client"), 9)
    broker.advance(1_000)
    assert broker.partition().log.log_end_offset == 0


def test_disconnect_of_a_dropped_connection_is_noticed(client: Client, broker: VirtualBroker) -> None:
    shaped(client).drop()
    client.leave()
    assert not broker.server.connections


def test_connection_is_dropped_after_the_idle_time(client: Client, broker: VirtualBroker) -> None:
    transport = shaped(client)
    transport.drop_when_idle(1_000, lambda: None)
    for _ in range(5):
        broker.advance(999)
        client.call(ApiVersionsRequest(), 0)
    broker.advance(1_000)
    client.send(ApiVersionsRequest(), 0)
    broker.advance(60_000)
    assert (client.responses, transport.dropped) == ([], True)


def test_responses_reset_the_idle_time(client: Client, broker: VirtualBroker) -> None:
    transport = shaped(client)
    transport.drop_when_idle(1_000, lambda: None)
    client.send(fetch(0, max_wait_ms=900), 11)
    broker.advance(1_800)
    assert client.response()
    assert not transport.dropped


def test_connection_is_not_dropped_after_the_idle_rule_ends(client: Client, broker: VirtualBroker) -> None:
    transport = shaped(client)
    end = transport.drop_when_idle(1_000, lambda: None)
    broker.advance(500)
    end()
    broker.advance(10_000)
    client.call(ApiVersionsRequest(), 0)


def test_reset_closes_the_connection_immediately(client: Client, broker: VirtualBroker) -> None:
    shaped(client).reset()
    broker.settle()
    assert client.closed_at_ms == broker.now_ms
    assert client.transport.aborted
