"""Answers of an upstream that a Kafka broker never sends: the client is disconnected, and one line has the reason."""

from logging import LogRecord

import pytest

from sluice.broker.faults.rule import Rule
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from sluice.protocol.codec.compile import encoder
from sluice.protocol.errors import ErrorCode
from sluice.proxy.forwarding import ForwardingExchange
from tests.support.records import fetch, fetched_bytes
from tests.support.virtual_broker import Client
from tests.support.virtual_proxy import VirtualProxy

MOST_BYTES = 1000
# To a Fetch.
ANSWERS = {
    "a negative size": (
        b"\xff\xff\xff\xff",
        "invalid frame size -1; expected 0 to 1000 bytes (socket.request.max.bytes)",
    ),
    "a size above the limit, of a frame that never ends": (
        (MOST_BYTES + 1).to_bytes(4) + bytes(1 << 20),
        "invalid frame size 1001; expected 0 to 1000 bytes (socket.request.max.bytes)",
    ),
    "a TLS alert": (
        bytes.fromhex("15030300020246"),
        "invalid frame size 352518912; expected 0 to 1000 bytes (socket.request.max.bytes); a TLS alert: does the peer"
        " expect TLS?",
    ),
    "HTTP": (
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        "invalid frame size 1213486160; expected 0 to 1000 bytes (socket.request.max.bytes); an HTTP response?",
    ),
    "a frame without a correlation id": ((2).to_bytes(4) + bytes(2), "a response of 2 bytes; expected at least 4"),
    "the wrong correlation id": ((8).to_bytes(4) + (7).to_bytes(4) + bytes(4), "correlation id 7; expected 1"),
    "a truncated response": (
        (8).to_bytes(4) + (1).to_bytes(4) + bytes(4),
        "FetchResponse v11: truncated (at byte 0 of 4)",
    ),
}


def assert_rejected(proxy: VirtualProxy, client: Client, answer: bytes, reason: str, lines: list[LogRecord]) -> None:
    proxy.connector.transports[0].receive(answer)
    proxy.settle()
    assert not client.is_open
    assert client.responses == []
    assert [(line.getMessage(), line.__dict__["reason"]) for line in lines] == [
        ("invalid response of the upstream broker", reason)
    ]


@pytest.mark.parametrize(("answer", "reason"), ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("quota", [(), ("quota.consumer.default=1000000",)], ids=["together", "alone"])
def test_invalid_answer_ends_the_connection_with_one_line(
    answer: bytes, reason: str, quota: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    proxy = VirtualProxy(f"socket.request.max.bytes={MOST_BYTES}", *quota)
    proxy.upstream.topic()  # so the Fetch waits
    client = proxy.client()
    client.send(fetch(0, max_wait_ms=60_000, min_bytes=1), 11)
    assert_rejected(proxy, client, answer, reason, caplog.records)


def test_answer_without_a_request_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    proxy = VirtualProxy()
    client = proxy.client()
    client.call(ApiVersionsRequest(), 0)
    reason = "a response of 8 bytes without a request"
    assert_rejected(proxy, client, (8).to_bytes(4) + bytes(8), reason, caplog.records)


@pytest.mark.parametrize("size", [-12, -(2**31), -1, 0, 2**31 - 1])
def test_records_of_any_size_are_corrupted(size: int) -> None:
    proxy = VirtualProxy()
    proxy.upstream.topic()
    proxy.cluster_server.faults.add(Rule("corrupt-records"))
    client = proxy.client()
    client.send(fetch(0, max_wait_ms=60_000, min_bytes=1), 11)
    records = bytes(8) + size.to_bytes(4, signed=True) + bytes(100)
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=records)])
    parts: list[bytes | memoryview] = [(1).to_bytes(4)]
    encoder(FetchResponse, 11)(FetchResponse(responses=[topic]), parts)
    proxy.connector.transports[0].receive(sum(map(len, parts)).to_bytes(4) + b"".join(parts))
    proxy.settle()
    received = fetched_bytes(client.response().message)
    assert len(received) == len(records)
    assert received != records


def exchange() -> ForwardingExchange:
    found = VirtualProxy().client().connection.request_handler
    assert isinstance(found, ForwardingExchange)
    return found


def test_unknown_error_codes_are_counted_up_to_a_limit() -> None:
    one = exchange()
    counted = {one._counted(code) for code in range(-(2**15), 2**15)}
    assert {*ErrorCode} <= counted
    assert len(counted) == 300


def test_names_of_topic_ids_are_kept_up_to_a_limit() -> None:
    one = exchange()
    one._learn((number.to_bytes(16), "t") for number in range(1, 100_003))
    kept = [int.from_bytes(topic_id) for topic_id in one._broker.metadata.topics_by_id]
    assert (kept[0], kept[-1], len(kept)) == (3, 100_002, 100_000)
