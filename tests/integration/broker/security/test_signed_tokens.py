"""Clients that authenticate with signed tokens; keys from a file and from an HTTP server."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError

from sluice import Broker
from sluice.oauth import TokenIssuer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, issuer: TokenIssuer) -> None:
        self._issuer = issuer

    async def token(self) -> str:
        return self._issuer.token("alice")


async def send(broker: Broker, issuer: TokenIssuer) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Tokens(issuer),
    ) as producer:
        await producer.send_and_wait("t", b"v")


@asynccontextmanager
async def served(issuer: TokenIssuer) -> "AsyncIterator[str]":
    """Serve the keys over HTTP in this event loop; yield the URL."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = issuer.jwks().encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}/jwks"


async def test_client_with_a_signed_token_is_authenticated(tmp_path: Path) -> None:
    issuer = TokenIssuer()
    async with Broker(config=issuer.broker_config(tmp_path / "jwks.json")) as broker:
        await send(broker, issuer)


async def test_keys_are_loaded_from_a_server_also_after_the_start(tmp_path: Path) -> None:
    issuer = TokenIssuer()
    config = issuer.broker_config(tmp_path / "unused")
    async with served(issuer) as url, Broker(config=config | {"sasl.oauthbearer.jwks.endpoint.url": url}) as broker:
        async with asyncio.timeout(30):  # far longer than a load takes
            while True:
                try:
                    await send(broker, issuer)
                    return
                except KafkaError:  # until the keys are loaded
                    await asyncio.sleep(0.05)
