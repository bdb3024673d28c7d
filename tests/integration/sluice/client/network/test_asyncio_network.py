"""The client over real sockets to a real broker: connecting, requests, timeouts and errors."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from sluice import Broker
from sluice.client.config import admin_config
from sluice.client.errors import DisconnectException, TimeoutException, UnsupportedVersionException
from sluice.client.metadata.cluster import Node
from sluice.client.metadata.metadata import Metadata
from sluice.client.network.asyncio_network import AsyncNetwork
from sluice.client.network.in_flight import request_of
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from sluice.protocol.apis.list_groups import ListGroupsRequest


def middle(low: float, high: float) -> float:
    return (low + high) / 2


@asynccontextmanager
async def network_to(servers: str, **given: str) -> AsyncIterator[AsyncNetwork]:
    named = {name.replace("_", "."): value for name, value in given.items()}
    config = admin_config({"bootstrap.servers": servers, **named})
    metadata = Metadata(config.retry_backoff(middle), 300_000, equivalent_backoff=None)
    network = AsyncNetwork.open(config, metadata, max_in_flight=5)
    try:
        yield network
    finally:
        await network.close()


async def nodes_of(network: AsyncNetwork) -> list[Node]:
    """Return the brokers in the metadata."""
    network.wakeup()
    await network.metadata_after(1, network.clock.monotonic_ms() + 10_000)
    return list(network.client.metadata.cluster.nodes.values())


async def test_every_broker_of_a_cluster_is_reachable() -> None:
    async with Broker(brokers=2) as broker, network_to(broker.bootstrap) as network:
        nodes = await nodes_of(network)
        assert {node.id: f"{node.host}:{node.port}" for node in nodes} == broker.brokers
        for node in nodes:
            response = await network.request(node, request_of(DescribeClusterRequest()))
            assert isinstance(response, DescribeClusterResponse)
            assert [node.broker_id for node in response.brokers] == list(broker.brokers)


async def test_host_name_is_resolved() -> None:
    async with Broker() as broker:
        _, _, port = broker.bootstrap.rpartition(":")
        async with network_to(f"localhost:{port}") as network:
            assert await nodes_of(network)


async def test_addresses_of_both_families_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async def getaddrinfo(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        return [
            (family, socket.SOCK_STREAM, 6, "", (address, port))
            for family, address in ((socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.1"))
        ]

    async with Broker() as broker:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
        _, _, port = broker.bootstrap.rpartition(":")
        async with network_to(f"localhost:{port}") as network:
            assert await nodes_of(network)


async def test_connection_error_has_its_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
    async with network_to(f"{host}:{port}") as network:
        with pytest.raises(
            DisconnectException, match=r"\(id 1\) cannot be reached: could not connect: Connection refused"
        ):
            await network.request(Node(1, host, port), request_of(ListGroupsRequest()))
        with pytest.raises(
            TimeoutException, match=r"not updated in time; last connection failure: 127\.0\.0\.1:\d+ \(id"
        ):
            await network.metadata_after(1, network.clock.monotonic_ms() + 10)


async def test_requests_share_a_connection_and_queue() -> None:
    async with Broker() as broker, network_to(broker.bootstrap) as network:
        (node,) = await nodes_of(network)
        responses = await asyncio.gather(*(network.request(node, request_of(ListGroupsRequest())) for _ in range(20)))
        assert len(responses) == 20


async def test_stopped_broker_is_unreachable() -> None:
    async with Broker() as broker, network_to(broker.bootstrap) as network:
        (node,) = await nodes_of(network)
        await network.request(node, request_of(ListGroupsRequest()))
        await broker.cluster.stop(node.id)
        with pytest.raises(DisconnectException):
            await _until_it_fails(lambda: network.request(node, request_of(ListGroupsRequest())))


async def _until_it_fails(call: Callable[[], Awaitable[object]]) -> None:
    while True:
        await call()


async def test_unsupported_request_is_not_sent() -> None:
    async with Broker() as broker, network_to(broker.bootstrap) as network:
        (node,) = await nodes_of(network)
        with pytest.raises(UnsupportedVersionException, match="the broker serves versions 0 to"):
            await network.request(node, request_of(ListGroupsRequest(), oldest=99, latest=99))


async def test_unresponsive_broker_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        async with network_to(f"{host}:{port}", request_timeout_ms="100") as network:
            with pytest.raises((TimeoutException, DisconnectException)):
                await network.request(Node(1, host, port), request_of(ListGroupsRequest()))
            with pytest.raises(TimeoutException, match="metadata was not updated in time"):
                await network.metadata_after(1, network.clock.monotonic_ms() + 10)


async def test_socket_buffer_sizes_are_set() -> None:
    async with Broker() as broker, network_to(broker.bootstrap, receive_buffer_bytes="8192") as network:
        (node,) = await nodes_of(network)
        await network.request(node, request_of(ListGroupsRequest()))
        connection = network.client._connections[node.id]
        assert connection._transport is not None
        sock = connection._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (8192, 16384)  # Linux doubles it


async def test_waiting_ends_at_the_timeout_and_when_cancelled() -> None:
    async with network_to("127.0.0.1:1") as network:
        before = network.clock.monotonic_ms()
        await network.wait(before + 5)
        assert network.clock.monotonic_ms() >= before + 5
        waiting = asyncio.ensure_future(network.wait())
        await network.wait(network.clock.monotonic_ms() + 1)
        waiting.cancel()
        network.wakeup()
        with pytest.raises(asyncio.CancelledError):
            await waiting
