"""Responses that clients do not read: what is in memory, and which connections are closed."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.log.segment_memory import RetainedMemory
from sluice.broker.network.connection import PIECES_AT_ONCE
from sluice.broker.network.unsent_responses import JOIN_BYTES, PIECE_BYTES, UnsentResponses, memory_of, take_piece
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.records import batch, fetch, fetched_bytes, produce
from tests.support.virtual_broker import HIGH_WATER_BYTES, Client, VirtualBroker, broker_with_topic

MIB = 1024 * 1024
METADATA = MetadataRequest(topics=None)


class FakeConnection:
    def __init__(self, name: str, closed: list[str]) -> None:
        self._name = name
        self._closed = closed

    def references(self, retained: RetainedMemory) -> bool:
        return False

    def close(self, reason: str) -> None:
        self._closed.append(self._name)


def test_connections_that_accepted_no_bytes_for_longest_are_closed_above_the_bound() -> None:
    closed: list[str] = []
    unsent = UnsentResponses(100)
    connections = {name: FakeConnection(name, closed) for name in "abcd"}
    for name, size in [("a", 30), ("b", 30), ("c", 30), ("a", 20)]:  # a has sent 10
        unsent.hold(connections[name], size)
    assert closed == []
    unsent.hold(connections["d"], 60)
    assert closed == ["b", "c"]
    assert unsent.held_bytes == 80


def test_single_connection_may_exceed_the_bound() -> None:
    closed: list[str] = []
    unsent = UnsentResponses(100)
    unsent.hold(FakeConnection("a", closed), 1000)
    assert closed == []


def test_released_bytes_are_not_counted() -> None:
    closed: list[str] = []
    unsent = UnsentResponses(100)
    first, second = FakeConnection("first", closed), FakeConnection("second", closed)
    unsent.hold(first, 100)
    unsent.release(first)
    unsent.release(first)
    unsent.hold(second, 100)
    assert (closed, unsent.held_bytes) == ([], 100)


@given(st.lists(st.sampled_from((1, JOIN_BYTES - 1, JOIN_BYTES, PIECE_BYTES, PIECE_BYTES + 1)), min_size=1, max_size=6))
def test_pieces_have_all_bytes_in_order(sizes: list[int]) -> None:
    parts = [bytes([number]) * size for number, size in enumerate(sizes)]
    left: deque[memoryview] = deque(memoryview(part) for part in parts)
    pieces = []
    while left:
        pieces.append(take_piece(left))
    assert b"".join(pieces) == b"".join(parts)
    assert max(map(len, pieces)) <= PIECE_BYTES


def test_memory_of_a_slice_is_its_whole_response_and_that_of_records_is_the_log_s() -> None:
    response, records = bytes(1000), bytearray(1000)
    assert memory_of([memoryview(response)[990:], memoryview(records)]) == 1000


# -- through a connection ----------------------------------------------------------------------------------------------


def with_large_batches(*overrides: str) -> VirtualBroker:
    """Return a broker whose topic t has 8 batches of 1 MB."""
    broker = broker_with_topic("sluice.record.validation.max.bytes=0", *overrides)
    producer = broker.client("producer")
    for _ in range(8):
        assert producer.call(produce(9, batch(bytes(1_000_000))), 9).responses[0].partition_responses[0].error_code == 0
    return broker


FETCH_ALL = fetch(0, partition_max_bytes=50 * MIB)


def not_reading(broker: VirtualBroker) -> Client:
    client = broker.client("not reading")
    client.stop_reading()
    return client


def test_transport_gets_a_large_response_in_pieces() -> None:
    broker = with_large_batches()
    client = not_reading(broker)
    client.send_together((FETCH_ALL, 11), (METADATA, 9))
    assert len(client.transport.unsent) <= HIGH_WATER_BYTES + PIECE_BYTES
    client.read_on()
    first, second = client.take_responses()
    assert len(fetched_bytes(first.message)) > 8_000_000
    assert second.api == "Metadata"
    assert client.transport.reading


def test_large_response_is_sent_in_several_turns() -> None:
    broker = with_large_batches()
    client, other = broker.client(), broker.client()
    sent_before: list[int] = []
    other.on_bytes = lambda data: sent_before.append(len(client.transport.writes))
    broker.loop.call_soon(other.send_bytes, other.frame(METADATA, 9))
    client.send_together((FETCH_ALL, 11), (METADATA, 9))
    assert sent_before == [PIECES_AT_ONCE], "a client that reads as fast does not delay others"
    assert [response.api for response in client.take_responses()] == ["Fetch", "Metadata"]


def test_client_that_disconnects_without_reading_releases_its_responses() -> None:
    broker = broker_with_topic(partitions=3000)
    client = not_reading(broker)
    client.send_together(*[(METADATA, 9)] * 3)
    assert broker.server._unsent_responses.held_bytes > HIGH_WATER_BYTES
    client.transport.fail(ConnectionResetError())
    broker.settle()
    assert broker.server._unsent_responses.held_bytes == 0
    assert broker.server.connections == {}


def test_unread_responses_of_all_clients_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    limit_bytes = MIB // 2
    broker = broker_with_topic(f"sluice.queued.max.response.bytes={limit_bytes}", partitions=2000)
    clients = [not_reading(broker) for _ in range(10)]
    for client in clients:
        client.send_together(*[(METADATA, 9)] * 5)
    kept = [client for client in clients if client.is_open]
    assert 1 < len(kept) < 10
    assert kept == clients[-len(kept) :], "those are closed that did not read for longest"
    assert sum(len(client.transport.unsent) for client in kept) < limit_bytes
    assert {getattr(record, "reason", "") for record in caplog.records} == {
        "unsent responses exceed sluice.queued.max.response.bytes=524288; this client did not read for longest"
    }
    assert broker.client().call(METADATA, 9), "other clients are served"
    kept[0].read_on()
    assert len(kept[0].take_responses()) == 5


def test_records_in_the_log_do_not_count_against_the_bound() -> None:
    broker = with_large_batches(f"sluice.queued.max.response.bytes={2 * MIB}")
    clients = [not_reading(broker) for _ in range(5)]
    for client in clients:
        client.send(FETCH_ALL, 11)
    assert all(client.is_open for client in clients)


@pytest.mark.parametrize("partial", [False, True], ids=["", "of which one piece is left"])
def test_unread_records_of_deleted_segments_are_bounded(partial: bool, caplog: pytest.LogCaptureFixture) -> None:
    broker = with_large_batches(f"sluice.queued.max.response.bytes={2 * MIB}", "sluice.log.memory.bytes=16M")
    readers = [not_reading(broker) for _ in range(3)]
    for number, client in enumerate(readers):
        client.send(fetch(number * 2, partition_max_bytes=1 if partial else 2 * MIB), 11)
    other = not_reading(broker)
    other.send_together(*[(METADATA, 9)] * 3)
    producer = broker.client("producer")
    retained = broker.cluster.logs.budget.retained
    for _ in range(40):  # more than the limit of all logs
        producer.call(produce(9, batch(bytes(1_000_000))), 9)
    assert retained.size_in_bytes <= 2 * MIB
    assert not readers[0].is_open
    assert other.is_open
    assert producer.is_open
    reasons = {getattr(record, "reason", "") for record in caplog.records}
    assert reasons == {"unsent records of deleted segments exceed sluice.queued.max.response.bytes=2097152"}
    for client in readers:
        client.transport.fail(ConnectionResetError())
    broker.settle()
    assert retained.size_in_bytes == 0


def test_stopped_broker_does_not_wait_for_clients_that_do_not_read() -> None:
    broker = with_large_batches()
    client = not_reading(broker)
    client.send(FETCH_ALL, 11)
    broker.server.close()
    broker.settle()
    assert client.transport.aborted
    assert broker.server._unsent_responses.held_bytes == 0
