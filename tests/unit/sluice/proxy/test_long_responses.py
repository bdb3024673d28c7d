"""Long responses of the upstream: read in slices, with the same bytes as at once, and other clients in between."""

from collections.abc import Callable

import pytest

from sluice.journal_events import Request
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.proxy import repeated_responses
from sluice.proxy.upstream import connection
from tests.support.messages import request
from tests.support.records import fetch, produce
from tests.support.virtual_broker import JOURNAL
from tests.support.virtual_proxy import VirtualProxy

PARTITIONS = 300
METADATA = MetadataRequest(topics=None)
UNKNOWN = MetadataRequest(
    topics=[MetadataRequestTopic(name=f"unknown-{number}") for number in range(PARTITIONS)],
    allow_auto_topic_creation=False,
)
OFFSETS = request(
    "ListOffsets",
    topics=[{"name": "t", "partitions": [{"partition_index": n, "timestamp": -1} for n in range(PARTITIONS)]}],
)
REQUESTS: list[tuple[Message, int]] = [
    *((METADATA, version) for version in range(1, 14)),
    (fetch(0), 11),
    (UNKNOWN, 12),
    (OFFSETS, 7),
    (fetch(0), 11),
    (METADATA, 12),
]


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> VirtualProxy:
    """Return a proxy that suspends each response but those of Fetch as often as it may."""
    monkeypatch.setattr(connection, "SCRATCH_BYTES", 0)
    proxy = VirtualProxy(JOURNAL)
    proxy.topic(partitions=PARTITIONS)
    proxy.cluster.runtime.long_requests.slice_ms = 0
    return proxy


def before_each_wait(proxy: VirtualProxy, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Call `act` before each wait for the next slice."""
    add = proxy.cluster.runtime.turns.add

    def acted(work: Callable[[], None]) -> None:
        act()
        add(work)

    monkeypatch.setattr(proxy.cluster.runtime.turns, "add", acted)


def errors(proxy: VirtualProxy) -> list[tuple[str, list[int]]]:
    events = [event for event in proxy.journal.events() if isinstance(event, Request)]
    return [(event.api, event.error_codes) for event in events]


@pytest.mark.parametrize("are_together", [False, True], ids=["one by one", "together"])
def test_a_long_response_has_the_same_bytes(
    proxy: VirtualProxy, monkeypatch: pytest.MonkeyPatch, *, are_together: bool
) -> None:
    sliced = proxy.client()
    if are_together:
        sliced.send_together(*REQUESTS)
    else:
        for each, version in REQUESTS:
            sliced.send(each, version)
    found = errors(proxy)
    assert ("Metadata", [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]) in found
    monkeypatch.setattr(connection, "SCRATCH_BYTES", 1 << 20)
    monkeypatch.setattr(repeated_responses, "REPEATED", frozenset())
    whole = proxy.client()
    for each, version in REQUESTS:
        whole.send(each, version)
    assert b"".join(sliced.transport.writes) == b"".join(whole.transport.writes)
    assert errors(proxy) == 2 * found


def test_other_clients_are_served_meanwhile(proxy: VirtualProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    client, other, served = proxy.client(), proxy.client("other"), []
    client.call(produce(9), 9)
    other.call(produce(9), 9)

    def produce_again() -> None:
        if not client.responses:
            other.transport.writes.clear()
            proxy.loop.call_soon(other.send, produce(9), 9)
            served.append(1)

    before_each_wait(proxy, monkeypatch, produce_again)
    client.send(OFFSETS, 7)
    assert len(served) > PARTITIONS / 16
    assert proxy.upstream.partition().log.log_end_offset > PARTITIONS / 16


def test_requests_of_the_same_client_are_forwarded_meanwhile(
    proxy: VirtualProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = proxy.client()
    offsets = []
    before_each_wait(proxy, monkeypatch, lambda: offsets.append(proxy.upstream.partition().log.log_end_offset))
    client.send_together((METADATA, 12), (produce(9), 9), (produce(9), 9))
    assert [response.api for response in client.take_responses()] == ["Metadata", "Produce", "Produce"]
    assert offsets[-1] == 2


@pytest.mark.parametrize("leaves", [True, False], ids=["the client", "the upstream"])
def test_the_rest_is_not_read_after_the_end_of_a_connection(
    proxy: VirtualProxy, monkeypatch: pytest.MonkeyPatch, *, leaves: bool
) -> None:
    client = proxy.client()
    client.call(produce(9), 9)
    (transport,) = proxy.connector.transports
    waits: list[None] = []

    def end() -> None:
        waits.append(None)
        if len(waits) == 2:
            proxy.loop.call_soon(client.leave) if leaves else transport.end(None)

    before_each_wait(proxy, monkeypatch, end)
    client.send(OFFSETS, 7)
    assert len(waits) < 5
    assert (client.responses, transport.is_closing()) == ([], True)
    assert proxy.cluster.runtime.long_requests.in_progress == 0


def test_a_malformed_response_ends_the_connection_with_one_line(
    proxy: VirtualProxy, caplog: pytest.LogCaptureFixture
) -> None:
    client = proxy.client()
    client.call(produce(9), 9)
    (transport,) = proxy.connector.transports
    transport.pause_reading()
    client.send(OFFSETS, 7)
    del transport._received[-1:]
    transport._received[:4] = (len(transport._received) - 4).to_bytes(4)
    transport.resume_reading()
    proxy.settle()
    assert not client.is_open
    assert [line.getMessage() for line in caplog.records] == ["invalid response of the upstream broker"]
    assert proxy.cluster.runtime.long_requests.in_progress == 0


def test_a_response_that_names_an_unknown_broker_is_not_repeated(proxy: VirtualProxy) -> None:
    client = proxy.client()
    (server,) = proxy.cluster_server.brokers.values()
    endpoints = proxy.cluster.brokers[server.node_id].endpoints
    kept = dict(endpoints)
    endpoints.clear()
    assert client.call(METADATA, 12).brokers == []
    endpoints.update(kept)
    assert len(client.call(METADATA, 12).brokers) == 1
