"""An upstream in virtual time that names brokers, and responds to ApiVersions and Metadata only."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random

from sluice.clock import LoopClock
from sluice.config.broker_config import Config
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.api_versions import ApiVersion, ApiVersionsResponse
from sluice.protocol.apis.metadata import MetadataResponse, MetadataResponseBroker
from sluice.protocol.codec.compile import encoder
from sluice.protocol.message import Message
from sluice.proxy.discovery import open_proxy
from sluice.proxy.server import ProxyOptions, ProxyServer
from sluice.web import load

HOST, PORT = "upstream", 9092
OPTIONS = {"bootstrap.servers": f"{HOST}:{PORT}"}


class NamedUpstream:
    """`brokers`: node ids and ports, which tests may change."""

    def __init__(self, brokers: Sequence[tuple[int, int]]) -> None:
        self.brokers = brokers

    async def listen(self, *ports: int) -> None:
        """Listen on these ports, by default only on that of the bootstrap server."""
        for port in ports or (PORT,):
            await asyncio.get_running_loop().create_server(lambda: _Connection(self), HOST, port)

    @property
    def responses(self) -> Mapping[int, Message]:
        versions = [
            ApiVersion(api_key=key, min_version=0, max_version=api.max_version) for key, api in API_KEYS.items()
        ]
        named = [MetadataResponseBroker(node_id=node_id, host=HOST, port=port) for node_id, port in self.brokers]
        return {
            ApiKey.API_VERSIONS: ApiVersionsResponse(api_keys=versions),
            ApiKey.METADATA: MetadataResponse(brokers=named),
        }


class _Connection(asyncio.Protocol):
    def __init__(self, upstream: NamedUpstream) -> None:
        self._upstream = upstream
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
            encoder(api.response, version)(self._upstream.responses[api.key], parts)
            self._transport.write(sum(map(len, parts)).to_bytes(4) + b"".join(parts))


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
