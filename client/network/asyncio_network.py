"""The NetworkClient for coroutines, and its sockets by asyncio: what waits, and what connects.

network = AsyncNetwork.open(config, metadata, max_in_flight=5)
response = await network.request(node, request_of(DescribeClusterRequest()))
await network.close()
"""

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from math import inf
from random import Random  # noqa: TID251  (a client's one source of chance is made here, unless it is given)
from typing import Protocol

from sluice.client.config import ClientConfig
from sluice.client.errors import DisconnectException, KafkaException, SslAuthenticationException, TimeoutException
from sluice.client.metadata.cluster import Node
from sluice.client.metadata.metadata import Metadata
from sluice.clock import Clock, LoopClock
from sluice.protocol.message import Message

from .connection import Cancelable, Connection
from .connection_states import Address
from .in_flight import Exchange, Request
from .network_client import SOFTWARE_VERSION, Connector, NetworkClient
from .tls import tls_context

log = logging.getLogger("sluice.client")


class AsyncConnector(Connector, Protocol):
    """Opens connections as long as it is not closed."""

    async def close(self) -> None:
        """Gives up what is under way."""


class AsyncNetwork:
    """A NetworkClient, and ways to wait for what it does. `client` is for those who send without waiting."""

    def __init__(self, client: NetworkClient, loop: asyncio.AbstractEventLoop, connector: "AsyncConnector") -> None:
        self._connector = connector
        self.client = client
        self.clock = client.clock
        self._loop = loop
        self._waiting: list[asyncio.Future[None]] = []
        client.listen(self._wake)

    @classmethod
    def open(
        cls,
        config: ClientConfig,
        metadata: Metadata,
        *,
        max_in_flight: int,
        random: Random | None = None,
        clock: Clock | None = None,
    ) -> "AsyncNetwork":
        """Over sockets of the running loop. Nothing is connected before something is asked for."""
        loop = asyncio.get_running_loop()
        connector = AsyncioConnector(loop, config)
        client = NetworkClient(
            config,
            metadata,
            clock or LoopClock(loop),
            connector,
            random or Random(),  # noqa: S311  (for jitter, not for secrets)
            max_in_flight=max_in_flight,
            software_version=SOFTWARE_VERSION,
        )
        return cls(client, loop, connector)

    async def wait(self, until_ms: float = inf) -> None:
        """Returns when something changed, or at `until_ms`."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(waiter)
        timer = None if until_ms == inf else self.clock.call_at(until_ms, lambda: _complete(waiter))
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()

    def wakeup(self) -> None:
        """Lets everybody who waits look again, and the client see whether something is due."""
        self.client.wakeup()
        self._wake()

    async def request(self, node: Node, request: Request) -> Message:
        """Sends a request as soon as the node is ready, and waits for the answer.

        Raises DisconnectException where the node cannot be reached, or is lost; TimeoutException where it is not ready
        within the request's timeout, or does not answer within it; UnsupportedVersionException; what an authentication
        failed with.
        """
        client, clock = self.client, self.clock
        now_ms = clock.monotonic_ms()
        deadline_ms = now_ms + (request.timeout_ms or client.request_timeout_ms)
        while not client.ready(node, now_ms):
            self.raise_if_closed()
            if client.connection_failed(node.id):
                raise _connection_error(client, node)
            if now_ms >= deadline_ms:
                raise self.timeout(f"node {node} was not ready for {request.api.name}")
            await self.wait(min(deadline_ms, now_ms + client.poll_delay_ms(node.id, now_ms)))
            now_ms = clock.monotonic_ms()
        return await self.send(node, request, now_ms)

    async def send(self, node: Node, request: Request, now_ms: float) -> Message:
        """Sends a request to a node that is ready, and waits for the answer. Raises what `request` raises."""
        answer: asyncio.Future[Exchange] = self._loop.create_future()
        self.client.send(node.id, request, partial(_complete_exchange, answer), now_ms)
        exchange = await answer
        failure = exchange.failure()
        if failure is not None:
            raise failure
        assert exchange.response is not None, "an answer was expected"
        return exchange.response

    async def metadata_after(self, update_version: int, deadline_ms: float) -> None:
        """Waits until metadata is newer than `update_version`. Raises what is fatal to it, or TimeoutException."""
        metadata = self.client.metadata
        while metadata.update_version <= update_version:
            metadata.raise_fatal_error()
            if self.clock.monotonic_ms() >= deadline_ms:
                raise self.timeout("metadata was not updated in time")
            await self.wait(deadline_ms)

    def timeout(self, problem: str) -> TimeoutException:
        """Return an error for what was not possible in time, with the last failure of a connection."""
        failure = self.client.last_failure
        return TimeoutException(problem if failure is None else f"{problem}; last connection failure: {failure}")

    def raise_if_closed(self) -> None:
        """Raises what a call is to fail with that nobody will answer."""
        if self.client.is_closed:
            raise KafkaException("the client is closed")

    async def close(self) -> None:
        """Closes all connections; what is on its way fails."""
        self.client.close()
        await self._connector.close()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            _complete(waiter)


def _complete_exchange(answer: asyncio.Future[Exchange], exchange: Exchange) -> None:
    if not answer.done():  # who asked has gone
        answer.set_result(exchange)


def _complete(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _connection_error(client: NetworkClient, node: Node) -> Exception:
    error, failure = client.authentication_error(node.id), client.last_failure
    reason = f": {failure.reason}" if failure is not None and failure.node == node else ""
    return error or DisconnectException(f"node {node} cannot be reached{reason}")


class AsyncioConnector:
    """Connections by the event loop.

    Different on purpose: `send.buffer.bytes` and `receive.buffer.bytes` are applied where they are set; Kafka's
    defaults would switch off what kernels of today do better by themselves.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, config: ClientConfig) -> None:
        self._loop = loop
        self._buffers = [
            (option, config.integer(name))
            for name, option in (("send.buffer.bytes", socket.SO_SNDBUF), ("receive.buffer.bytes", socket.SO_RCVBUF))
            if config.is_set(name) and config.integer(name) >= 0
        ]
        self._tls = tls_context(config) if config.uses_tls else None
        self._tasks: set[asyncio.Task[None]] = set()  # a loop keeps only weak references to them

    def resolve(self, host: str, port: int, resolved: Callable[[Sequence[Address] | OSError], None]) -> Cancelable:
        """Resolve a host to all its addresses.

        Different on purpose: Kafka drops those of another family than the first. In a JVM the first is IPv4; a system's
        resolver may put IPv6 first, and `localhost` would not reach a broker that listens on 127.0.0.1.
        """
        return self._start(self._resolve(host, port, resolved))

    def connect(self, address: Address, connection: Connection, failed: Callable[[Exception], None]) -> Cancelable:
        """A TCP connection, with TLS over it where that is configured."""
        return self._start(self._connect(address, connection, failed))

    async def close(self) -> None:
        """Gives up what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _resolve(self, host: str, port: int, resolved: Callable[[Sequence[Address] | OSError], None]) -> None:
        if _is_address(host):
            resolved([(host, port)])
            return
        try:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            resolved(OSError(error.strerror))
            return
        resolved(list(dict.fromkeys((str(info[4][0]), port) for info in found)))

    async def _connect(self, address: Address, connection: Connection, failed: Callable[[Exception], None]) -> None:
        name = connection.node.host if self._tls is not None else None
        try:
            transport, _ = await self._loop.create_connection(
                lambda: connection, *address, ssl=self._tls, server_hostname=name
            )
        except OSError as error:
            failed(_connect_error(error))
            return
        sock = transport.get_extra_info("socket")
        for option, size in self._buffers:
            sock.setsockopt(socket.SOL_SOCKET, option, size)

    def _start(self, coroutine: Coroutine[object, None, None]) -> "asyncio.Task[None]":
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _connect_error(error: OSError) -> Exception:
    """Return the error of an attempt to connect; a connection lost during the TLS handshake is no TLS failure."""
    if isinstance(error, ssl.SSLError):
        is_lost = isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
        return error if is_lost else SslAuthenticationException(str(error))
    return OSError(os.strerror(error.errno)) if error.errno else error  # asyncio replaces the system's text


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return True
    return False
