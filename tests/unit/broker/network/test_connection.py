"""One connection: frames, response order, close, back-pressure, and memory of waiting requests."""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from sluice.broker.exchange.exchange import Exchange
from sluice.broker.metadata.topic import Topic
from sluice.broker.network.slow_frames import CHECK_MS, LEAST_BYTES
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.turn_queue import TURN_MS
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.frame import PARKED_READ_BYTES, SCRATCH_BYTES
from tests.support.records import batch, fetch, fetched_bytes, produce, produce_of
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic
from tests.support.wire import frame

MIB = 1024 * 1024


def closed_line(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    """Return the fields of the only log record, which must report a closed connection without a traceback."""
    assert len(caplog.records) == 1, f"expected one log line: {[record.getMessage() for record in caplog.records]}"
    (record,) = caplog.records
    assert record.getMessage() == "connection closed"
    assert record.exc_info is None, "an error of the peer logs no traceback"
    return vars(record)


# -- order -------------------------------------------------------------------------------------------------------------


def test_requests_of_one_read_are_answered_in_order_with_one_write(topic: Topic, client: Client) -> None:
    client.send_together(*[(produce(9), 9)] * 20, (fetch(0), 11), (MetadataRequest(topics=None), 9))
    responses = client.take_responses()
    assert [response.correlation_id for response in responses] == list(range(1, 23))
    assert [response.api for response in responses] == ["Produce"] * 20 + ["Fetch", "Metadata"]
    assert len(client.transport.writes) == 1, "all responses to one read are sent in one write"


def test_requests_beyond_one_turn_are_answered_in_order(broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_requests(monkeypatch, broker, work_ms=0.01)
    client = broker.client()
    client.send_together(*[(ApiVersionsRequest(), 0)] * 1000)
    broker.advance(10)
    assert [response.correlation_id for response in client.take_responses()] == list(range(1, 1001))
    assert client.transport.reading


def test_long_pipelines_delay_another_client_by_one_turn_each(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = VirtualBroker()
    slow_requests(monkeypatch, broker, work_ms=0.5)
    pipelining = [broker.client(f"pipelining-{number}") for number in range(4)]
    other = broker.client("other")
    for client in pipelining:
        client._sent += b"".join(client.frame(ApiVersionsRequest(), 0) for _ in range(100))
        broker.loop.call_soon(client.deliver)
    broker.loop.call_soon(other.send_bytes, other.frame(ApiVersionsRequest(), 0))
    broker.advance(401 * 0.5)
    assert other.response().at_ms <= 5 * TURN_MS + 0.5, "one turn of each pipelining client and of the queue precede"
    assert [len(client.take_responses()) for client in pipelining] == [100] * 4
    assert broker.now_ms == 401 * 0.5


def slow_requests(monkeypatch: pytest.MonkeyPatch, broker: VirtualBroker, work_ms: float) -> None:
    """Make each request take `work_ms`; timers that become due run after it."""
    dispatch = Exchange.dispatch

    def work(exchange: Exchange, ctx: RequestContext, view: memoryview, start: int, end: int) -> None:
        broker.clock._now_ms += work_ms
        dispatch(exchange, ctx, view, start, end)

    monkeypatch.setattr(Exchange, "dispatch", work)


def test_request_after_a_waiting_one_is_answered_after_it(topic: Topic, client: Client, broker: VirtualBroker) -> None:
    client.send_together((fetch(0, max_wait_ms=500), 11), (ApiVersionsRequest(), 0))
    assert client.take_responses() == [], "a response does not overtake that of an earlier request"
    broker.advance(500)
    assert [(response.api, response.at_ms) for response in client.take_responses()] == [
        ("Fetch", 500),
        ("ApiVersions", 500),
    ]


# -- frames ------------------------------------------------------------------------------------------------------------


def test_request_split_at_any_byte_is_answered_when_complete(client: Client, broker: VirtualBroker) -> None:
    broker.topic()
    data = client.frame(produce(9), 9) + client.frame(fetch(0), 12)
    client._last_id = 0
    wrong = []
    for cut in range(1, len(data)):
        client._in_flight = {1: (0, 9), 2: (1, 12)}
        client.send_bytes(data[:cut])
        before = len(client.responses)
        client.send_bytes(data[cut:])
        if [response.api for response in client.take_responses()] != ["Produce", "Fetch"] or before == 2:
            wrong.append(cut)
    assert wrong == []
    assert broker.partition().log.log_end_offset == len(data) - 1


def test_requests_received_byte_by_byte_are_answered() -> None:
    client = VirtualBroker().client()
    data = client.frame(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3) * 3
    for position in range(len(data)):
        client._in_flight = {1: (18, 3)}
        client.send_bytes(data[position : position + 1])
    assert len(client.take_responses()) == 3


@pytest.mark.parametrize(
    "size", [SCRATCH_BYTES - 5, SCRATCH_BYTES - 4, SCRATCH_BYTES, SCRATCH_BYTES + 1, 3 * SCRATCH_BYTES, 5 * MIB]
)
@pytest.mark.parametrize("piece", [1000, 65_536, 10 * MIB])
def test_large_request_in_pieces_is_stored_completely(size: int, piece: int) -> None:
    broker = broker_with_topic("message.max.bytes=10485760", "sluice.record.validation.max.bytes=0")
    client = broker.client()
    request = produce_of(size, 9, "client")
    for _ in range(2):  # the second is read directly into a buffer of that size
        data = client.frame(request, 9)
        for position in range(0, len(data), piece):
            client.send_bytes(data[position : position + piece])
        assert client.response().message.responses[0].partition_responses[0].error_code == 0
    stored = fetched_bytes(client.call(fetch(1, partition_max_bytes=10 * MIB), 12))
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, bytes)
    assert stored[61:] == records[61:]  # after the header, which contains the offset


def traced_bytes() -> int:
    gc.collect(1)  # the objects of this test
    return tracemalloc.get_traced_memory()[0]


def test_announced_frame_size_allocates_no_memory(broker: VirtualBroker) -> None:
    clients = [broker.client() for _ in range(100)]
    for client in clients:  # allocates the read buffers before the measurement
        client.send_bytes(b"\0")
    tracemalloc.start()
    try:
        before = traced_bytes()
        for client in clients:
            client.send_bytes((100 * MIB).to_bytes(4)[1:])  # announces 100 MiB and sends none of them
        allocated = traced_bytes() - before
    finally:
        tracemalloc.stop()
    assert allocated < 1 * MIB, f"{allocated} bytes allocated for 100 announced requests of 100 MiB"


def test_memory_of_a_large_request_grows_with_the_received_bytes() -> None:
    client = VirtualBroker().client()
    tracemalloc.start()
    try:
        before = traced_bytes()
        client.send_bytes((7 * MIB).to_bytes(4) + bytes(1 * MIB))
        allocated = traced_bytes() - before
    finally:
        tracemalloc.stop()
    # A buffer of twice the received bytes, and the smaller ones before it, kept for the next request.
    assert 1 * MIB <= allocated < 4 * MIB, f"{allocated} bytes allocated for 1 MiB received of 7 MiB"


def test_closed_connection_releases_its_request_memory(client: Client) -> None:
    client.send_bytes((100 * MIB).to_bytes(4) + bytes(SCRATCH_BYTES))
    assert client.connection._reader.pool.reserved_bytes > 100 * MIB
    client.leave()
    assert client.connection._reader.pool.reserved_bytes == 0


# -- protocol errors ---------------------------------------------------------------------------------------------------

HEADER = (0).to_bytes(2) + (9).to_bytes(2) + (7).to_bytes(4)  # Produce v9, correlation id 7
VALID = frame(produce(9), 9, client_id="some-client")[4:]


def sized(body: bytes) -> bytes:
    return len(body).to_bytes(4) + body


MALFORMED_REQUESTS = {
    "a frame above socket.request.max.bytes": ((100 * MIB + 1).to_bytes(4), "", "invalid frame size 104857601"),
    "a negative size": ((-1).to_bytes(4, signed=True), "", "invalid frame size -1"),
    "HTTP": (b"GET / HTTP/1.1\r\n\r\n", "", "invalid frame size 1195725856"),
    "an empty frame": (sized(b""), "", "got 0"),
    "a frame shorter than its header": (sized(HEADER[:7]), "", "got 7"),
    "a client id beyond the end of the frame": (
        sized(HEADER + (500).to_bytes(2) + b"abc"),
        "",
        "client id length 500 exceeds the request size",
    ),
    "a truncated body": (sized(VALID[:-1]), "Produce v9", ""),
    "an unknown API": (sized((1234).to_bytes(2) + VALID[2:]), "", "API key 1234, version 9: unsupported version"),
    "an API that is not served": (
        sized((64).to_bytes(2) + VALID[2:]),
        "",
        "UnregisterBroker version 9: unsupported version",
    ),
    "a negative API key": (sized((-1).to_bytes(2, signed=True) + VALID[2:]), "", "API key -1"),
    "a newer version": (
        sized(VALID[:2] + (14).to_bytes(2) + VALID[4:]),
        "",
        "Produce version 14: unsupported version; expected 0 to 13",
    ),
    "a negative version": (
        sized(VALID[:2] + (-1).to_bytes(2, signed=True) + VALID[4:]),
        "",
        "Produce version -1: unsupported version",
    ),
    "an array length larger than the frame": (
        sized((3).to_bytes(2) + (1).to_bytes(2) + (7).to_bytes(4) + b"\xff\xff" + (2**31 - 1).to_bytes(4)),
        "Metadata v1",
        "",
    ),
    "a compact array length larger than the frame": (
        sized((3).to_bytes(2) + (9).to_bytes(2) + (7).to_bytes(4) + b"\xff\xff\0" + b"\xff\xff\xff\xff\x0f" * 2),
        "Metadata v9",
        "",
    ),
    "a tagged field of the header beyond the end of the frame": (
        sized(HEADER + b"\xff\xff" + b"\x01\x00\xff\xff\xff\xff\x0f"),
        "Produce v9",
        "",
    ),
}


@pytest.mark.parametrize(("data", "api", "reason"), MALFORMED_REQUESTS.values(), ids=MALFORMED_REQUESTS)
@pytest.mark.parametrize("earlier", [False, True], ids=["as the first request", "after a valid request"])
def test_malformed_request_closes_the_connection_and_logs_one_line(
    broker: VirtualBroker, data: bytes, api: str, reason: str, earlier: bool, caplog: pytest.LogCaptureFixture
) -> None:
    broker.topic()
    client = broker.client("good-client")
    if earlier:
        client.call(ApiVersionsRequest(), 0)
    client.send_bytes(data)
    assert client.closed_at_ms == 0, "a malformed request closes the connection"
    assert client.take_responses() == []
    assert broker.server.connections == {}
    line = closed_line(caplog)
    assert (line["peer"], line["api"]) == ("127.0.0.1:40001", api)
    assert reason in line["reason"]
    assert line["reason"]
    assert "\n" not in line["reason"]


def test_log_line_of_a_malformed_request_has_the_client_id_and_api(caplog: pytest.LogCaptureFixture) -> None:
    client = VirtualBroker().client()
    client.send_bytes(sized(VALID[:-1]))
    line = closed_line(caplog)
    assert (line["client_id"], line["api"]) == ("some-client", "Produce v9")


def test_bytes_after_a_request_body_are_ignored_as_in_kafka(client: Client, broker: VirtualBroker) -> None:
    # librdkafka sends three after a Metadata request for all topics (its issue 5049).
    broker.topic()
    body = client.frame(MetadataRequest(topics=None), 9)[4:] + b"\1\0\0"
    client.send_bytes(sized(body))
    assert [topic.name for topic in client.response().message.topics] == ["t"]
    assert client.call(ApiVersionsRequest(), 0)


def test_requests_before_a_malformed_one_are_answered_and_later_ones_are_not(
    topic: Topic, client: Client, broker: VirtualBroker, caplog: pytest.LogCaptureFixture
) -> None:
    client.send_bytes(client.frame(produce(9), 9) + sized(b"") + client.frame(produce(9), 9))
    assert client.response().correlation_id == 1
    assert broker.partition().log.log_end_offset == 1, "a request after a malformed one is not handled"
    closed_line(caplog)


@pytest.mark.parametrize("version", [6, 99, 32_767, -1])
def test_unsupported_api_versions_version_returns_version_0_with_error_35(version: int) -> None:
    client = VirtualBroker().client()
    data = client.frame(ApiVersionsRequest(), 0)
    client.send_bytes(data[:6] + version.to_bytes(2, signed=True) + data[8:])
    message = client.response().message
    assert message.error_code == 35
    assert [(api.api_key, api.min_version, api.max_version) for api in message.api_keys] == [(18, 0, 5)]
    assert client.is_open, "the client can retry on the same connection"
    assert client.call(ApiVersionsRequest(), 0).error_code == 0


def test_failed_produce_with_acks_0_closes_the_connection(
    topic: Topic, client: Client, broker: VirtualBroker, caplog: pytest.LogCaptureFixture
) -> None:
    client.send_together((produce(9, topic="nowhere", acks=0), 9), (produce(9), 9))
    assert client.closed_at_ms == 0
    assert client.take_responses() == []
    assert broker.partition().log.log_end_offset == 0, "a request after the failed one is not handled"
    line = closed_line(caplog)
    assert (line["client_id"], line["api"]) == ("client", "Produce v9")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in line["reason"]


def test_produce_with_acks_0_has_no_response(topic: Topic, client: Client, broker: VirtualBroker) -> None:
    client.send_together((produce(9, acks=0), 9), (produce(9), 9))
    assert client.response().correlation_id == 2
    assert broker.partition().log.log_end_offset == 2


# -- disconnects -------------------------------------------------------------------------------------------------------


def parked_fetch(broker: VirtualBroker) -> Client:
    client = broker.client()
    client.send(fetch(0, max_wait_ms=60_000), 11)
    assert client.responses == []
    return client


def test_disconnect_during_a_parked_request_is_noticed_and_removes_the_request(broker: VirtualBroker) -> None:
    broker.topic()
    client = parked_fetch(broker)
    assert len(broker.broker.replicas.fetches) == 1
    client.leave()
    assert client.closed_at_ms == 0, "a connection with a parked request is read, so that its end is noticed"
    assert len(broker.broker.replicas.fetches) == 0, "the fetch of a disconnected client is removed"
    assert [route.requests for route in broker.server.exchange.routes] == [0], (
        "a response that was not sent is not counted"
    )
    assert broker.server.connections == {}
    broker.client().call(produce(9), 9)  # completes no removed fetch
    broker.advance(60_000)


def test_disconnect_is_noticed_despite_requests_after_a_parked_one(client: Client, broker: VirtualBroker) -> None:
    broker.topic()
    client.send_together((fetch(0, max_wait_ms=1000), 11), *[(ApiVersionsRequest(), 0)] * 3)
    client.leave()
    broker.advance(1000)
    assert client.closed_at_ms is not None
    assert broker.server.connections == {}


def test_connection_is_not_read_further_while_a_request_is_parked(topic: Topic, broker: VirtualBroker) -> None:
    client = parked_fetch(broker)
    client.send_bytes(b"".join(client.frame(ApiVersionsRequest(), 0) for _ in range(4_000)))
    assert client.unread_bytes >= 4_000 * 20 - PARKED_READ_BYTES, "TCP buffers the requests, not the broker"
    broker.advance(60_000)
    assert len(client.take_responses()) == 4_001


QUOTAS = {"without a quota": [], "while the client is throttled": ["quota.producer.default=10"]}


@pytest.mark.parametrize("quota", QUOTAS.values(), ids=QUOTAS)
def test_requests_sent_before_a_half_close_are_answered(quota: list[str]) -> None:
    broker = broker_with_topic(*quota)
    client = broker.client()
    client.send_together((fetch(0, max_wait_ms=500), 11), (produce(3), 3), (ApiVersionsRequest(), 0))
    client.end()
    assert client.is_open, "a half-closed connection stays open while its request waits"
    broker.advance(60_000)
    assert [response.api for response in client.take_responses()] == ["Fetch", "Produce", "ApiVersions"]
    assert client.closed_at_ms is not None, "a half-closed connection is closed after its last response"
    assert not client.transport.aborted


def test_half_close_after_a_long_pipeline_takes_effect_after_all_requests() -> None:
    client = VirtualBroker().client()
    client._sent += b"".join(client.frame(ApiVersionsRequest(), 0) for _ in range(2000))
    client.end()
    assert len(client.take_responses()) == 2000
    assert client.closed_at_ms is not None


def test_half_close_without_requests_closes_the_connection_without_a_log_line(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.call(ApiVersionsRequest(), 0)
    client.end()
    assert client.closed_at_ms == 0
    assert caplog.records == []


# -- back-pressure -----------------------------------------------------------------------------------------------------


def test_requests_of_a_client_that_does_not_read_its_responses_are_not_handled(broker: VirtualBroker) -> None:
    broker.topic()
    client = broker.client()
    client.call(produce(9, batch(bytes(200_000))), 9)
    client.stop_reading()
    fetches = [(fetch(0), 11)] * 50
    client.send_together(*fetches)
    assert len(client.transport.unsent) < 4 * 200_000, "responses do not accumulate for a client that does not read"
    assert not client.transport.reading
    client.read_on()
    assert len(client.take_responses()) == 50
    assert client.transport.reading


def test_client_that_resumes_reading_still_waits_for_its_parked_request(client: Client, broker: VirtualBroker) -> None:
    broker.topic()
    client.call(produce(9, batch(bytes(200_000))), 9)
    client.stop_reading()
    client.send_together((fetch(0), 11), (fetch(1, max_wait_ms=1000), 11), (ApiVersionsRequest(), 0))
    client.read_on()
    broker.advance(10)
    assert [response.api for response in client.take_responses()] == ["Fetch"]
    broker.advance(1000)
    assert [(response.api, response.at_ms) for response in client.take_responses()] == [
        ("Fetch", 1000),
        ("ApiVersions", 1000),
    ]


# -- queued.max.request.bytes ------------------------------------------------------------------------------------------


def with_request_memory_limit(*overrides: str) -> VirtualBroker:
    """Return a broker with memory for one large request at a time."""
    return broker_with_topic(f"socket.request.max.bytes={MIB}", f"queued.max.request.bytes={MIB}", *overrides)


def test_large_request_is_not_read_until_memory_is_available() -> None:
    broker = with_request_memory_limit()
    first, second, small = broker.client("first"), broker.client("second"), broker.client("small")
    data = first.frame(produce_of(700_000, 9, "first"), 9)
    first.send_bytes(data[:300_000])
    second.send(produce_of(700_000, 9, "second"), 9)
    assert second.responses == [], "no request is read beyond queued.max.request.bytes"
    assert second.unread_bytes >= 700_000 - 2 * SCRATCH_BYTES
    assert small.call(produce(9), 9)  # not charged: it fits into the shared buffer
    first.send_bytes(data[300_000:])
    assert first.response().api == "Produce"
    assert second.response().api == "Produce"


@pytest.mark.parametrize("disconnect", [Client.leave, Client.end])
def test_disconnect_of_a_client_releases_memory_for_the_next_large_request(
    disconnect: Callable[[Client], None],
) -> None:
    broker = with_request_memory_limit()
    first, second = broker.client(), broker.client()
    first.send_bytes(first.frame(produce_of(700_000, 9, "client"), 9)[:300_000])
    second.send(produce_of(700_000, 9, "client"), 9)
    disconnect(first)
    assert second.response().api == "Produce"


@pytest.mark.parametrize(("bytes_per_check", "ends"), [(100, True), (LEAST_BYTES - 1, True), (LEAST_BYTES, False)])
def test_slow_large_request_ends_its_connection_while_others_wait(bytes_per_check: int, ends: bool) -> None:
    broker = with_request_memory_limit()
    slow, waiting = broker.client("slow"), broker.client("waiting")
    data = slow.frame(produce_of(900_000, 9, "slow"), 9)
    slow.send_bytes(data[:300_000])
    broker.advance(10 * CHECK_MS)
    assert slow.is_open, "no request waits"
    waiting.send(produce_of(700_000, 9, "waiting"), 9)
    for begin in (300_000, 300_000 + bytes_per_check):
        assert slow.is_open
        slow.send_bytes(data[begin : begin + bytes_per_check])
        broker.advance(CHECK_MS)
    assert slow.is_open is not ends
    assert bool(waiting.responses) is ends


def test_queued_max_request_bytes_of_minus_1_is_unlimited() -> None:
    broker = broker_with_topic("queued.max.request.bytes=-1")
    clients = [broker.client() for _ in range(10)]
    for client in clients:
        client.send_bytes((100 * MIB).to_bytes(4) + bytes(SCRATCH_BYTES))
    last = broker.client()
    assert last.call(produce_of(700_000, 9, "client"), 9)


def test_large_request_after_a_throttled_one_reserves_no_memory() -> None:
    broker = with_request_memory_limit("quota.producer.override=slow:10")
    slow, other = broker.client("slow"), broker.client("other")
    data = slow.frame(produce(9), 9) + slow.frame(produce_of(700_000, 9, "slow"), 9)
    slow.send_bytes(data[:300_000])
    assert slow.response().throttle_time_ms > 0
    other.send(produce_of(700_000, 9, "other"), 9)
    assert other.response().at_ms == 0, "a client above its quota does not delay another one"


# -- memory of waiting requests ----------------------------------------------------------------------------------------


WAITING = {
    "held for a quota": (["quota.producer.default=1000"], 3, 1),
    "muted for a quota": (["quota.producer.default=1000"], 9, 1),
    "waiting for replicas": (["sluice.replication.delay.ms=60000"], 9, -1),
}


@pytest.mark.parametrize(("overrides", "version", "acks"), WAITING.values(), ids=WAITING)
def test_waiting_produce_requests_reference_no_record_bytes(overrides: list[str], version: int, acks: int) -> None:
    broker = VirtualBroker("sluice.journal.events=0", *overrides)  # the journal would retain its events
    topic = broker.topic()
    clients = [broker.client("client") for _ in range(50)]  # one quota sensor, which takes 3,000 bytes
    request = produce_of(20_000, version, "client", acks=acks)
    frames = [client.frame(request, version) for client in clients]
    assert clients[0].transport.reading
    warm = VirtualBroker("sluice.journal.events=0", *overrides)  # compiles codecs and imports handlers
    warm_topic = warm.topic()
    for _ in range(2):
        warm.client("client").send(request, version)
    warm.broker.cluster.delete(warm_topic)
    tracemalloc.start()
    try:
        before = traced_bytes()
        for client, data in zip(clients, frames, strict=True):
            client.send_bytes(data)
        waiting = sum(client.connection.waiting for client in clients)
        broker.broker.cluster.delete(topic)  # removes the records from the log: requests must not reference them
        allocated = traced_bytes() - before
    finally:
        tracemalloc.stop()
    assert waiting == len(clients)
    assert allocated < len(clients) * 4_000, (
        f"{allocated // len(clients)} bytes for each waiting Produce request of 20,000 bytes"
    )


def test_internal_error_in_a_delayed_response_closes_its_connection(
    broker: VirtualBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = broker.partition(broker.topic().name)
    waiting, other = broker.client(), broker.client()
    waiting.send(fetch(0, max_wait_ms=500), 11)
    monkeypatch.setattr(type(partition.log), "read", _fails)
    broker.advance(500)
    assert not waiting.is_open, "an internal error closes the connection"
    assert [record.getMessage() for record in caplog.records] == ["request failed"]
    assert other.is_open, "other connections stay open"


def _fails(*_: object) -> None:
    raise ZeroDivisionError
