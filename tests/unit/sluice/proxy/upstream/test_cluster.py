"""The brokers that an upstream names, and those that the proxy cannot reach."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from sluice import testing
from sluice.client.errors import KafkaException
from sluice.clock import LoopClock
from sluice.config.broker_config import Config
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.api_versions import ApiVersion, ApiVersionsResponse
from sluice.protocol.apis.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from sluice.protocol.codec.compile import encoder
from sluice.protocol.message import Message
from sluice.proxy.discovery import open_proxy
from sluice.proxy.server import ProxyOptions, ProxyServer
from sluice.proxy.upstream.cluster import UpstreamCluster
from sluice.web import load
from tests.support.wire import frame

HOST, PORT = "upstream", 9092
OPTIONS = {"bootstrap.servers": f"{HOST}:{PORT}"}


class Upstream(asyncio.Protocol):
    def __init__(self, responses: Mapping[int, Message]) -> None:
        self._responses = responses
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= (end := 4 + int.from_bytes(self._received[:4])):
            request, self._received = self._received[4:end], self._received[end:]
            api, version = API_KEYS[int.from_bytes(request[:2])], int.from_bytes(request[2:4])
            parts: list[bytes | memoryview] = [request[4:8], b"\0" * api.response_header_version(version)]
            encoder(api.response, version)(self._responses[api.key], parts)
            self._transport.write(sum(map(len, parts)).to_bytes(4) + b"".join(parts))


async def serve(brokers: list[tuple[int, int]]) -> None:
    """Listen as an upstream that names brokers by node id and port."""
    versions = [ApiVersion(api_key=key, min_version=0, max_version=api.max_version) for key, api in API_KEYS.items()]
    named = [MetadataResponseBroker(node_id=node_id, host=HOST, port=port) for node_id, port in brokers]
    responses: dict[int, Message] = {
        ApiKey.API_VERSIONS: ApiVersionsResponse(api_keys=versions),
        ApiKey.METADATA: MetadataResponse(brokers=named),
    }
    await asyncio.get_running_loop().create_server(lambda: Upstream(responses), HOST, PORT)


@asynccontextmanager
async def proxy() -> AsyncIterator[ProxyServer]:
    loop = asyncio.get_running_loop()
    config = Config.load(None, ["listeners=PLAINTEXT://127.0.0.1:0"], {})
    options = ProxyOptions(OPTIONS, {}, None)
    opened = await open_proxy(options, config, LoopClock(loop), Random(0), loop, load)
    try:
        await opened.start()
        yield opened
    finally:
        await opened.stop()


@pytest.mark.parametrize("brokers", [[(-1, PORT)], [(number, PORT) for number in range(1001)]])
def test_an_upstream_names_up_to_1000_brokers(brokers: list[tuple[int, int]]) -> None:
    async def main() -> None:
        await serve(brokers)
        upstream = UpstreamCluster(OPTIONS, LoopClock(asyncio.get_running_loop()))
        with pytest.raises(KafkaException, match="expected 1 to 1000 brokers, got"):
            await upstream.refresh()
        assert upstream.brokers == {}
        await upstream.close()

    testing.run(main())


def test_a_negative_node_id_is_no_broker() -> None:
    async def main() -> None:
        await serve([(-1, PORT), (4, PORT)])
        async with proxy() as opened:
            assert [*opened.servers] == [4]

    testing.run(main())


def test_a_broker_that_does_not_respond_is_served_like_another(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        await serve([(1, PORT), (2, PORT + 1)])
        async with proxy() as opened:
            assert opened.servers[2].broker.served == opened.servers[1].broker.served

    testing.run(main())
    lines = [
        (line.getMessage(), line.__dict__["broker"])
        for line in caplog.records
        if line.name == "sluice.proxy" and line.levelno >= logging.WARNING
    ]
    assert lines == [("an upstream broker does not respond", 2)]


@pytest.mark.parametrize(
    "error",
    [OverflowError("port must be 0-65535."), UnicodeError("label too long"), OSError(111, "Connection refused")],
    ids=["port", "host name", "refused"],
)
def test_a_client_is_closed_if_the_broker_has_no_valid_address(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        await serve([(1, PORT)])
        loop = asyncio.get_running_loop()
        connect = loop.create_connection

        async def fail(factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, **options: Any) -> Any:
            if port == PORT:
                raise error
            return await connect(factory, host, port, **options)

        async with proxy() as opened:
            monkeypatch.setattr(loop, "create_connection", fail)
            reader, writer = await asyncio.open_connection("127.0.0.1", opened.servers[1].endpoints[0].port)
            writer.write(frame(MetadataRequest(), 9, client_id="c", correlation_id=1))
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()

    testing.run(main())
    lines = [(line.getMessage(), line.__dict__["reason"]) for line in caplog.records if line.name == "sluice.proxy"]
    assert lines == [("upstream broker unreachable", getattr(error, "strerror", None) or str(error))]
