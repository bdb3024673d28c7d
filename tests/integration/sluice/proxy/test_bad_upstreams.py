"""Upstreams that a proxy cannot use: it ends with one line, or logs one line and tries again."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple

import pytest

from sluice import Broker
from sluice.client.admin import AdminClient
from sluice.errors import SluiceError
from sluice.proxy.server import ProxyServer
from sluice.proxy.upstream.cluster import UpstreamBroker
from tests.support.certificates import certificates
from tests.support.ports import free_ports
from tests.support.proxy_over_sockets import bootstrap_of, client, listener, running_proxy

# Enough for the first failures; only `sends nothing` takes as long.
QUICK = {"request.timeout.ms": "500", "socket.connection.setup.timeout.ms": "500"}
Upstream = Callable[[], AbstractAsyncContextManager[str]]
Answer = Callable[[asyncio.Transport], object]


def server(answer: Answer) -> Upstream:
    """Return a server that waits for a request, then answers."""
    connections: list[asyncio.Transport] = []

    class Answering(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            connections.append(transport)

        def data_received(self, data: bytes) -> None:
            answer(connections[-1])

    @asynccontextmanager
    async def running() -> AsyncIterator[str]:
        listening = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
        try:
            yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        finally:
            listening.close()
            for transport in connections:
                transport.abort()
            await asyncio.sleep(0)  # until they are closed

    return running


def sends(data: bytes) -> Answer:
    return lambda transport: transport.write(data)


def nothing(_: asyncio.Transport) -> None:
    pass


def broker(**properties: str) -> Upstream:
    @asynccontextmanager
    async def running() -> AsyncIterator[str]:
        async with Broker(config=listener("PLAINTEXT") | properties) as one:
            yield one.bootstrap

    return running


def secured(protocol: str, **ssl: str) -> Upstream:
    return broker(**listener(protocol, **ssl))


@asynccontextmanager
async def advertised() -> AsyncIterator[str]:
    """Run a broker whose certificate has the bootstrap server's name, but not the one that it advertises."""
    names = {"listeners": "SSL://0.0.0.0:0", "advertised.listeners": "SSL://127.0.0.9:0"}
    async with Broker(config=listener("SSL") | names) as one:
        yield f"127.0.0.1:{one.bootstrap.rpartition(':')[2]}"


def at(address: str) -> Upstream:
    @asynccontextmanager
    async def nowhere() -> AsyncIterator[str]:
        yield address

    return nowhere


class Bad(NamedTuple):
    upstream: Upstream
    properties: dict[str, str]
    line: str  # a regular expression


TLS = client("SSL")
UNTRUSTED = TLS | {"ssl.truststore.location": str(certificates().other_ca)}
STRANGER = client("SSL", keystore_location=str(certificates().stranger))
EXPIRED = client("SSL", keystore_location=str(certificates().expired))
NOT_KAFKA = "expected a response of a Kafka broker"

# These cannot heal: the start fails.
FATAL = {
    "an HTTP server": Bad(server(sends(b"HTTP/1.1 400 Bad Request\r\n\r\n")), {}, f"an HTTP response\\?; {NOT_KAFKA}"),
    "an SSH server": Bad(server(sends(b"SSH-2.0-OpenSSH_9.2\r\n")), {}, f"invalid frame size .*; {NOT_KAFKA}"),
    "garbage": Bad(server(sends(bytes(range(40, 200)))), {}, f"invalid frame size .*; {NOT_KAFKA}"),
    "a response of zeros": Bad(server(sends(b"\0\0\0\x10" + bytes(16))), {}, f"api_keys: .*; {NOT_KAFKA}"),
    "a plaintext server for TLS": Bad(
        server(sends(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
        TLS,
        "the broker does not respond with TLS; check security.protocol",
    ),
    "an untrusted certificate": Bad(secured("SSL"), UNTRUSTED, "certificate verify failed: self-signed certificate"),
    "a certificate for another host": Bad(
        broker(**listener("SSL", keystore_location=str(certificates().alice))),
        TLS,
        "certificate verify failed: .*not valid",
    ),
    "a broker that advertises another host": Bad(
        advertised, TLS, "127.0.0.9:.*IP address mismatch, certificate is not valid for '127.0.0.9'"
    ),
    "a missing client certificate": Bad(
        secured("SSL", client_auth="required"), TLS, r"\(certificate required\); check ssl.keystore.location"
    ),
    "an untrusted client certificate": Bad(
        secured("SSL", client_auth="required"), STRANGER, r"\(unknown ca\); check ssl.keystore.location"
    ),
    "an expired client certificate": Bad(
        secured("SSL", client_auth="required"), EXPIRED, r"\(certificate expired\); check ssl.keystore.location"
    ),
    "a wrong password": Bad(
        secured("SASL_PLAINTEXT"),
        client("SASL_PLAINTEXT", user="mallory", mechanism="PLAIN"),
        "Authentication failed: Invalid username or password",
    ),
    "a wrong password by SCRAM": Bad(
        secured("SASL_SSL"), client("SASL_SSL", user="mallory"), "invalid credentials with SASL mechanism SCRAM-SHA-256"
    ),
    "a mechanism that is not enabled": Bad(
        broker(**listener("SASL_PLAINTEXT") | {"sasl.enabled.mechanisms": "SCRAM-SHA-512"}),
        client("SASL_PLAINTEXT", mechanism="PLAIN"),
        "the broker does not accept PLAIN; expected one of SCRAM-SHA-512",
    ),
    "SASL for a listener without SASL": Bad(
        broker(), client("SASL_PLAINTEXT"), "the broker does not accept SCRAM-SHA-256; check security.protocol"
    ),
}


# These may heal: one line, then further attempts.
TRANSIENT = {
    "sends nothing": Bad(server(nothing), {}, "ApiVersions: no response within 500 ms"),
    "no TLS handshake": Bad(server(nothing), TLS, "connection setup timed out"),
    "closes the connection": Bad(
        server(asyncio.Transport.close), {}, "the broker closed the connection; check security.protocol"
    ),
    "closes the connection in the TLS handshake": Bad(
        server(asyncio.Transport.close), TLS, "closed the connection during the TLS handshake; check security.protocol"
    ),
    "TLS for a plaintext listener": Bad(broker(), TLS, "the TLS handshake; check security.protocol"),
    "plaintext for a TLS listener": Bad(secured("SSL"), {}, "check security.protocol"),
    "no SASL for a listener with SASL": Bad(secured("SASL_PLAINTEXT"), {}, "check security.protocol"),
    "an unknown host": Bad(at("no-such-host.invalid:9092"), {}, "Name or service not known|not known"),
    "a refused connection": Bad(at("127.0.0.1:1"), {}, "could not connect: Connection refused"),
}


@pytest.mark.parametrize("bad", FATAL.values(), ids=FATAL)
async def test_the_start_fails_with_one_line(bad: Bad, warnings: "Warnings") -> None:
    async with bad.upstream() as bootstrap:
        with pytest.raises(SluiceError, match=bad.line) as failure:
            async with running_proxy({"bootstrap.servers": bootstrap, **QUICK, **bad.properties}):
                pass
    assert re.match(r"upstream [\w.]+:\d+: ", str(failure.value))
    assert "\n" not in str(failure.value)
    assert "secret" not in str(failure.value)
    # On a busy machine, a connection may take longer than the short timeout of these tests.
    assert [each for each in warnings.records if "trying again" not in each.getMessage()] == []


class Warnings(logging.Handler):
    """The warnings of the proxy."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []
        self.first = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.first.set()


@pytest.fixture
def warnings() -> Iterator[Warnings]:
    handler, log = Warnings(), logging.getLogger("sluice.proxy")
    log.addHandler(handler)
    yield handler
    log.removeHandler(handler)


@pytest.mark.parametrize("bad", TRANSIENT.values(), ids=TRANSIENT)
async def test_the_start_is_tried_again(bad: Bad, warnings: Warnings) -> None:
    async def start(bootstrap: str) -> None:
        async with running_proxy({"bootstrap.servers": bootstrap, **QUICK, **bad.properties}):
            pass

    async with bad.upstream() as bootstrap:
        starting = asyncio.ensure_future(start(bootstrap))
        await warnings.first.wait()
        assert not starting.done()
        starting.cancel()
        await asyncio.wait([starting])
    line = warnings.records[0]
    assert line.getMessage() == "the upstream cluster does not respond; trying again"
    assert re.search(bad.line, vars(line)["reason"])


async def test_a_refused_connection_is_logged_once_and_healed(warnings: Warnings) -> None:
    (port,) = free_ports(1)
    starting = asyncio.ensure_future(
        asyncio.wait_for(brokers_seen({"bootstrap.servers": f"127.0.0.1:{port}", "reconnect.backoff.ms": "10"}), 60)
    )
    await warnings.first.wait()
    await asyncio.sleep(0.3)  # some more attempts
    async with Broker(config={"listeners": f"PLAINTEXT://127.0.0.1:{port}"}):
        assert await starting == 1
    assert len(warnings.records) == 1


async def brokers_seen(upstream: dict[str, str]) -> int:
    """Return the number of brokers that a client sees at a proxy."""
    async with running_proxy(upstream) as proxy, AdminClient({"bootstrap.servers": bootstrap_of(proxy)}) as admin:
        return len((await admin.describe_cluster(timeout_ms=20_000)).brokers)


async def test_a_proxy_as_upstream() -> None:
    async with Broker(brokers=2) as one, running_proxy({"bootstrap.servers": one.bootstrap}) as below:
        assert await brokers_seen({"bootstrap.servers": bootstrap_of(below)}) == 2


async def test_a_broker_that_advertises_the_proxy_is_refused() -> None:
    (port,) = free_ports(1)
    async with Broker(config={"advertised.listeners": f"PLAINTEXT://localhost:{port + 1}"}) as one:
        with pytest.raises(SluiceError, match=f"broker 1 advertises localhost:{port + 1}, on which the proxy listens"):
            async with running_proxy(
                {"bootstrap.servers": one.bootstrap}, {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}
            ):
                pass


API_VERSIONS = b"\0\0\0\x0c\0\x12\0\0\0\0\0\1\0\2me"  # v0


def lead_back(proxy: ProxyServer) -> None:
    """Make the address of broker 1 that of the proxy."""
    endpoint = proxy.servers[1].endpoints[0]
    proxy.upstream.brokers[1] = UpstreamBroker(1, endpoint.host, endpoint.port)


async def test_an_address_that_leads_back_to_the_proxy_is_not_used(warnings: Warnings) -> None:
    async with Broker() as one, running_proxy({"bootstrap.servers": one.bootstrap}) as proxy:
        right = proxy.upstream.brokers[1]
        lead_back(proxy)
        for _ in range(3):
            reader, writer = await asyncio.open_connection(*bootstrap_of(proxy).split(":"))
            writer.write(API_VERSIONS)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
        (line,) = warnings.records
        assert "leads back to this proxy" in vars(line)["reason"]
        assert proxy.upstream_state(1).connections == 1
        proxy.upstream.brokers[1] = right
        async with AdminClient({"bootstrap.servers": bootstrap_of(proxy)}) as admin:
            assert (await admin.describe_cluster(timeout_ms=20_000)).brokers


async def test_a_client_with_the_port_of_an_upstream_connection_is_not_a_loop() -> None:
    """The system gives the same port to connections to different addresses."""
    async with Broker() as one, running_proxy({"bootstrap.servers": one.bootstrap}) as proxy:
        own = ("127.0.0.1", free_ports(1)[0])
        proxy._connector._ends[own, ("127.0.0.2", 9092)] = 1
        host, port = bootstrap_of(proxy).split(":")
        reader, writer = await asyncio.open_connection(host, port, local_addr=own)
        writer.write(API_VERSIONS)
        assert await reader.readexactly(4)
        writer.close()
        await writer.wait_closed()
