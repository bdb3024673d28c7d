"""Clients that authenticate with signed tokens; keys from a file and from an HTTP server."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider

from sluice import Broker
from sluice.broker.security.sasl.signed_jwt import HttpKeys
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
async def served(issuers: list[TokenIssuer]) -> "AsyncIterator[str]":
    """Serve the keys of the first issuer over HTTP; yield the URL."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = issuers[0].jwks().encode()
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


async def loads(keys: HttpKeys, key_id: str) -> bool:
    """Return whether a key arrives within a minute, far longer than two loads take."""
    for _ in range(6_000):
        if keys.key(key_id) is not None:
            return True
        await asyncio.sleep(0.01)
    return False


async def test_keys_of_a_server_are_loaded_again_for_an_unknown_key_id() -> None:
    issuers = [TokenIssuer()]
    async with served(issuers) as url:
        keys = await asyncio.to_thread(HttpKeys, url, 3600.0)
        assert await loads(keys, "1")
        assert keys.key("2") is None
        issuers[0] = TokenIssuer(key_id="2")
        assert await loads(keys, "2")
        assert keys.key("1") is None
