"""Records of large Fetch responses pass the proxy by splice(2): the client receives what the broker has sent."""

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest

from sluice import SyncBroker, SyncProxy
from sluice.faults import Bandwidth
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.fetch import FetchRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.message import Message
from sluice.proxy.upstream import connection
from sluice.proxy.upstream.relay import CAN_RELAY, Relay
from tests.support import skips
from tests.support.messages import request
from tests.support.records import batch_of, produce
from tests.support.wire import WireClient

pytestmark = pytest.mark.skipif(not CAN_RELAY, reason=skips.system("splice(2); run it on Linux"))

BATCH_BYTES = 700_000
# Topics by the number of batches in each of their partitions.
TOPICS = {"one": (1,), "two": (1, 1), "small-last": (1, 0), "large": (8,)}
LARGEST = 1 << 30
RECEIVE_BUFFER_BYTES = 64 * 1024  # far less than a response


@pytest.fixture(scope="module")
def broker() -> Iterator[SyncBroker]:
    with SyncBroker(config={"log.retention.ms": -1}) as broker:  # the records have old timestamps
        for topic, partitions in TOPICS.items():
            broker.cluster.create_topic(topic, partitions=len(partitions))
            with WireClient(broker.bootstrap) as client:
                for index, batches in enumerate(partitions):
                    for _ in range(batches):
                        client.call(produce(9, batch_of(BATCH_BYTES), topic=topic, partition=index), 9)
        yield broker


@pytest.fixture
def proxy(broker: SyncBroker) -> Iterator[SyncProxy]:
    with SyncProxy(broker.bootstrap) as proxy:
        yield proxy


@pytest.fixture
def relays(monkeypatch: pytest.MonkeyPatch) -> list[Relay]:
    started: list[Relay] = []

    def start(*arguments: object) -> Relay:
        started.append(Relay(*arguments))  # type: ignore[arg-type]  # the caller's
        return started[-1]

    monkeypatch.setattr(connection, "Relay", start)
    return started


def topic_id_of(bootstrap: str, topic: str) -> bytes:
    with WireClient(bootstrap) as client:
        (found,) = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12).topics
    return bytes(found.topic_id)


def fetch_all(broker: SyncBroker, topic: str, version: int) -> FetchRequest:
    named = {"topic": topic} if version < 13 else {"topic_id": topic_id_of(broker.bootstrap, topic)}
    partitions = [
        {"partition": index, "fetch_offset": 0, "partition_max_bytes": LARGEST} for index in range(len(TOPICS[topic]))
    ]
    topics = [{**named, "partitions": partitions}]
    return request("Fetch", replica_id=-1, max_bytes=LARGEST, max_wait_ms=0, topics=topics)  # type: ignore[return-value]


def rest_of(connection: socket.socket) -> int:
    """Return how many bytes arrive until the end of the connection."""
    count = 0
    with suppress(ConnectionResetError):
        while piece := connection.recv(100_000):
            count += len(piece)
    return count


def received(bootstrap: str, message: FetchRequest, version: int) -> bytes:
    with WireClient(bootstrap) as client:
        client.send(message, version)
        return client.receive_bytes()


@pytest.mark.parametrize("version", range(4, API_KEYS[ApiKey.FETCH].max_version + 1))
@pytest.mark.parametrize("topic", TOPICS)
def test_response_is_the_brokers(
    topic: str, version: int, broker: SyncBroker, proxy: SyncProxy, relays: list[Relay]
) -> None:
    message = fetch_all(broker, topic, version)
    expected = received(broker.bootstrap, message, version)
    assert received(proxy.bootstrap, message, version) == expected
    assert len(expected) > BATCH_BYTES
    assert len(relays) == (topic in {"one", "large"})
    (event,) = proxy.journal.requests(api="Fetch")
    assert event.response_bytes == len(expected)


def test_requests_that_follow_are_answered_in_order(broker: SyncBroker, proxy: SyncProxy, relays: list[Relay]) -> None:
    messages: list[tuple[Message, int]] = [
        (fetch_all(broker, "one", 11), 11),
        (MetadataRequest(topics=[]), 12),
        (fetch_all(broker, "two", 17), 17),
        (fetch_all(broker, "large", 17), 17),
        (fetch_all(broker, "one", 17), 17),
    ]
    with WireClient(broker.bootstrap) as direct, WireClient(proxy.bootstrap) as client:
        for message, version in messages:
            direct.send(message, version)
            client.send(message, version)
        for message, _ in messages:
            expected, found = direct.receive_bytes(), client.receive_bytes()
            if not isinstance(message, MetadataRequest):  # which has addresses
                assert found == expected
    assert len(relays) == 3


def test_client_that_does_not_read_delays_only_itself(
    broker: SyncBroker, proxy: SyncProxy, relays: list[Relay]
) -> None:
    message = fetch_all(broker, "large", 12)
    expected = received(broker.bootstrap, message, 12)
    with WireClient(proxy.bootstrap) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        client.send(message, 12)
        assert received(proxy.bootstrap, message, 12) == expected
        assert client.receive_bytes() == expected
    assert len(relays) == 2


def test_records_that_arrive_in_pieces(broker: SyncBroker, proxy: SyncProxy, relays: list[Relay]) -> None:
    message = fetch_all(broker, "one", 12)
    expected = received(broker.bootstrap, message, 12)
    with broker.faults.add(Bandwidth(out_bytes_per_s=4_000_000)):
        assert received(proxy.bootstrap, message, 12) == expected
    assert len(relays) == 1


def test_broker_that_ends_during_a_response_ends_the_connection(
    broker: SyncBroker, proxy: SyncProxy, relays: list[Relay]
) -> None:
    message = fetch_all(broker, "large", 12)
    with broker.faults.add(Bandwidth(out_bytes_per_s=1_000_000)), WireClient(proxy.bootstrap) as client:
        client.send(message, 12)
        assert client.socket.recv(100_000, socket.MSG_WAITALL)
        broker.cluster.stop(1)
        assert rest_of(client.socket) < 8 * BATCH_BYTES
    broker.cluster.start(1)
    assert len(relays) == 1
    assert len(received(proxy.bootstrap, message, 12)) > 8 * BATCH_BYTES


@pytest.mark.parametrize("is_reset", [False, True], ids=["closed", "reset"])
def test_client_that_leaves_ends_the_relay(
    is_reset: bool, broker: SyncBroker, proxy: SyncProxy, relays: list[Relay]
) -> None:
    message = fetch_all(broker, "large", 12)
    with WireClient(proxy.bootstrap) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        client.send(message, 12)
        client.socket.recv(1)
        if is_reset:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert len(received(proxy.bootstrap, message, 12)) > 8 * BATCH_BYTES
    assert len(relays) == 2
    proxy.wait_for(lambda: len(proxy.journal.events(kind="connection-closed")) == 2)


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_response_that_a_quota_charges_is_read(mode: str, broker: SyncBroker, relays: list[Relay]) -> None:
    config = {"quota.consumer.default": "1000M", "sluice.quota.mode": mode}
    message = fetch_all(broker, "one", 12)
    with SyncProxy(broker.bootstrap, config=config) as proxy:
        assert received(proxy.bootstrap, message, 12) == received(broker.bootstrap, message, 12)
    assert not relays
