"""The shaped transport under a connection: slow, silent, or dead without saying so."""

import pytest

from sluice.broker.network.shaped_transport import PIECE_MS, ShapedTransport, shape_transport
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.records import fetch, produce_of
from tests.support.virtual_broker import Client, VirtualBroker

RATE = 10_000


@pytest.fixture
def broker() -> VirtualBroker:
    broker = VirtualBroker()
    broker.topic()
    return broker


def shaped(client: Client) -> ShapedTransport:
    """The transport that is put under a client's connection."""
    transport = shape_transport(client.connection, client.broker.broker)
    assert transport is not None
    return transport


def test_a_connection_keeps_the_line_that_it_has(broker: VirtualBroker) -> None:
    client = broker.client()
    assert shaped(client) is shaped(client)


def test_a_connection_that_has_ended_gets_none(broker: VirtualBroker) -> None:
    client = broker.client()
    client.leave()
    assert shape_transport(client.connection, broker.broker) is None


def test_a_line_that_does_nothing_changes_nothing(broker: VirtualBroker) -> None:
    client = broker.client()
    shaped(client)
    for _ in range(3):
        client.send(ApiVersionsRequest(), 0)
        assert client.answer().at_ms == broker.now_ms
    client.leave()
    assert client.connection.closed


# -- limited -----------------------------------------------------------------------------------------------------------


def test_what_goes_out_takes_as_long_as_its_bytes(broker: VirtualBroker) -> None:
    client = broker.client()
    client.ask(produce_of(50_000, 9, "client"), 9)
    shaped(client).limit(None, RATE)
    began_ms = broker.now_ms
    client.send(fetch(0), 11)
    broker.advance(10_000)
    answer = client.answer()
    assert answer.at_ms - began_ms == pytest.approx(answer.size / RATE * 1e3, abs=60)


def test_what_goes_out_goes_steadily(broker: VirtualBroker) -> None:
    client = broker.client()
    client.ask(produce_of(50_000, 9, "client"), 9)
    shaped(client).limit(None, RATE)
    client.send(fetch(0), 11)
    sent = len(client.transport.writes)
    for _ in range(20):
        broker.advance(100)
        pieces = client.transport.writes[sent:]
        sent += len(pieces)
        assert max(map(len, pieces)) <= RATE * PIECE_MS / 1e3
        assert sum(map(len, pieces)) == pytest.approx(RATE / 10, abs=150)


def test_what_comes_in_takes_as_long_as_its_bytes_and_tcp_pushes_back(broker: VirtualBroker) -> None:
    client = broker.client()
    shaped(client).limit(RATE, None)
    began_ms = broker.now_ms
    request = client.frame(produce_of(50_000, 9, "client"), 9)
    client.send_bytes(request)
    broker.advance(2_000)
    assert client.unread_bytes == pytest.approx(len(request) - 2 * RATE, abs=1_000)
    assert not client.answers
    broker.advance(8_000)
    assert client.answer().at_ms - began_ms == pytest.approx(len(request) / RATE * 1e3, abs=60)


def test_a_byte_a_second_still_moves(broker: VirtualBroker) -> None:
    client = broker.client()
    shaped(client).limit(1, None)
    size = len(client.frame(ApiVersionsRequest(), 0))
    client.send(ApiVersionsRequest(), 0)
    broker.advance((size - 2) * 1_000)
    assert not client.answers
    broker.advance(2_000)
    assert client.answer()


def test_a_limit_that_is_lifted_holds_nothing_back(broker: VirtualBroker) -> None:
    client = broker.client()
    client.ask(produce_of(50_000, 9, "client"), 9)
    lift = shaped(client).limit(RATE, RATE)
    client.send(fetch(0), 11)
    broker.advance(100)
    assert not client.answers
    lift()
    assert client.answer()
    client.ask(produce_of(50_000, 9, "client"), 9)


def test_a_client_that_is_answered_slowly_has_no_further_requests_handled(broker: VirtualBroker) -> None:
    client = broker.client()
    client.ask(produce_of(200_000, 9, "client"), 9)
    shaped(client).limit(None, 100_000)
    for request, version in ((fetch(0), 11), (MetadataRequest(topics=[]), 9), (produce_of(200, 9, "client"), 9)):
        client.send(request, version)
    broker.advance(1_000)
    assert broker.partition().log.log_end_offset == 1, "it was handled, though 100 kB before it have not left"
    broker.advance(1_500)
    assert [one.api for one in client.take_answers()] == ["Fetch", "Metadata", "Produce"]


def test_what_is_still_to_go_goes_before_the_end(broker: VirtualBroker) -> None:
    client = broker.client()
    client.ask(produce_of(30_000, 9, "client"), 9)
    shaped(client).limit(None, RATE)
    client.send(fetch(0), 11)
    client.end()
    broker.advance(1_000)
    assert client.is_open
    broker.advance(3_000)
    assert client.answer()
    assert not client.is_open


def test_of_several_limits_the_slowest_counts_and_the_others_when_that_is_lifted(broker: VirtualBroker) -> None:
    client = broker.client()
    transport = shaped(client)
    transport.limit(RATE, None)
    lift = transport.limit(1, None)
    client.send(produce_of(10_000, 9, "client"), 9)
    broker.advance(10_000)
    assert not client.answers
    lift()
    broker.advance(1_100)
    assert client.answer()


def test_a_connection_that_is_closed_while_its_answers_leave_slowly_handles_nothing_more(broker: VirtualBroker) -> None:
    client = broker.client()
    client.ask(produce_of(30_000, 9, "client"), 9)
    shaped(client).limit(None, RATE)
    client.send(fetch(0), 11)
    client.connection.abort()
    client.send(produce_of(200, 9, "client"), 9)
    broker.advance(5_000)
    assert client.closed_at_ms is not None
    assert broker.partition().log.log_end_offset == 1


# -- held --------------------------------------------------------------------------------------------------------------


def test_a_line_that_is_held_answers_nothing_until_it_is_released(broker: VirtualBroker) -> None:
    client = broker.client()
    transport = shaped(client)
    transport.hold()
    client.send(ApiVersionsRequest(), 0)
    broker.advance(60_000)
    assert (client.answers, client.is_open) == ([], True)
    transport.release()
    broker.settle()
    assert client.answer()


def test_answers_of_a_line_that_is_held_wait(broker: VirtualBroker) -> None:
    client = broker.client()
    client.send(fetch(0, max_wait_ms=100), 11)
    transport = shaped(client)
    transport.hold()
    broker.advance(1_000)
    assert not client.answers
    transport.release()
    assert client.answer()


def test_who_leaves_a_line_that_is_held_is_gone(broker: VirtualBroker) -> None:
    for leave in (Client.leave, Client.end):
        client = broker.client()
        shaped(client).hold()
        client.send(produce_of(200, 9, "client"), 9)
        leave(client)
        assert not broker.server.connections
    assert broker.partition().log.log_end_offset == 0


def test_a_client_cannot_send_without_end_on_a_line_that_is_held(broker: VirtualBroker) -> None:
    client = broker.client()
    transport = shaped(client)
    transport.hold()
    for _ in range(5):
        client.send(produce_of(50_000, 9, "client"), 9)
    assert client.unread_bytes > 100_000, "TCP pushes back"
    transport.release()
    broker.advance(0)
    assert len(client.take_answers()) == 5


def test_a_line_that_is_held_twice_goes_on_when_it_is_released_twice(broker: VirtualBroker) -> None:
    client = broker.client()
    transport = shaped(client)
    transport.hold()
    transport.hold()
    client.send(ApiVersionsRequest(), 0)
    transport.release()
    broker.settle()
    assert not client.answers
    transport.release()
    broker.settle()
    assert client.answer()


def test_what_came_while_it_was_held_waits_for_what_its_connection_waits_for() -> None:
    broker = VirtualBroker("quota.producer.default=1000")
    broker.topic()
    client = broker.client()
    transport = shaped(client)
    transport.hold()
    for _ in range(2):
        client.send(produce_of(20_000, 9, "client"), 9)
    transport.release()
    broker.settle()
    throttle_ms = client.answer().throttle_time_ms
    assert throttle_ms > 0
    broker.advance(throttle_ms)
    assert client.answer().at_ms == throttle_ms


def test_a_connection_that_is_closed_while_its_line_is_held_ends_with_that(broker: VirtualBroker) -> None:
    client = broker.client()
    transport = shaped(client)
    transport.hold()
    client.connection.abort()
    broker.advance(1_000)
    assert client.is_open
    transport.release()
    assert not client.is_open


def test_a_connection_that_is_cut_ends_though_its_line_is_held(broker: VirtualBroker) -> None:
    client = broker.client()
    shaped(client).hold()
    client.connection.cut()
    broker.settle()
    assert client.closed_at_ms is not None
    assert not broker.server.connections


# -- dropped -----------------------------------------------------------------------------------------------------------


def test_a_line_that_is_dropped_answers_nothing_and_tells_no_end(broker: VirtualBroker) -> None:
    client = broker.client()
    client.send(fetch(0, max_wait_ms=100), 11)
    shaped(client).drop()
    client.send(ApiVersionsRequest(), 0)
    broker.advance(60_000)
    assert (client.answers, client.is_open) == ([], True)
    assert client.unread_bytes == 0, "its bytes are to be thrown away, not to fill up"


def test_what_is_thrown_away_is_not_handled(broker: VirtualBroker) -> None:
    client = broker.client()
    shaped(client).drop()
    client.send(produce_of(200, 9, "client"), 9)
    broker.advance(1_000)
    assert broker.partition().log.log_end_offset == 0


def test_who_leaves_a_line_that_is_dropped_is_gone(broker: VirtualBroker) -> None:
    client = broker.client()
    shaped(client).drop()
    client.leave()
    assert not broker.server.connections


def test_a_line_is_dropped_when_it_was_idle_for_so_long_and_not_before(broker: VirtualBroker) -> None:
    client = broker.client()
    transport = shaped(client)
    transport.drop_when_idle(1_000, lambda: None)
    for _ in range(5):
        broker.advance(999)
        client.ask(ApiVersionsRequest(), 0)
    broker.advance(1_000)
    client.send(ApiVersionsRequest(), 0)
    broker.advance(60_000)
    assert (client.answers, transport.dropped) == ([], True)


def test_answers_keep_a_line_from_being_idle(broker: VirtualBroker) -> None:
    client = broker.client()
    transport = shaped(client)
    transport.drop_when_idle(1_000, lambda: None)
    client.send(fetch(0, max_wait_ms=900), 11)
    broker.advance(1_800)
    assert client.answer()
    assert not transport.dropped


def test_a_line_that_need_not_be_idle_any_more_stays(broker: VirtualBroker) -> None:
    client = broker.client()
    transport = shaped(client)
    end = transport.drop_when_idle(1_000, lambda: None)
    broker.advance(500)
    end()
    broker.advance(10_000)
    client.ask(ApiVersionsRequest(), 0)


def test_a_reset_ends_the_connection_at_once(broker: VirtualBroker) -> None:
    client = broker.client()
    shaped(client).reset()
    broker.settle()
    assert client.closed_at_ms == broker.now_ms
    assert client.transport.aborted
