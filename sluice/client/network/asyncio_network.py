"""The asyncio side of the NetworkClient: coroutines and sockets.

network = AsyncNetwork.open(config, metadata, max_in_flight=5)
response = await network.request(node, request_of(DescribeClusterRequest()))
await network.close()
"""

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from random import Random  # noqa: TID251  (the client's only source of randomness, unless one is given)
from types import coroutine

from sluice.client.backoff import new_random
from sluice.client.config import ClientConfig
from sluice.client.errors import DisconnectException, KafkaException, TimeoutException
from sluice.client.metadata.cluster import Node
from sluice.client.metadata.metadata import Metadata
from sluice.clock import Clock, LoopClock
from sluice.protocol.message import Message

from .connection import Cancelable, Connection
from .connection_states import Address
from .in_flight import Exchange, Request
from .network_client import SOFTWARE_VERSION, Connector, NetworkClient
from .tls import CHECK_PROTOCOL, handshake_error, tls_context

log = logging.getLogger("sluice.client")


class AsyncNetwork:
    """A NetworkClient with coroutines. Use `client` to send without waiting."""

    def __init__(self, client: NetworkClient, loop: asyncio.AbstractEventLoop, connector: Connector) -> None:
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
        """Return a network on the running loop; it connects on the first request."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise KafkaException("no event loop runs in this thread; create the client in a coroutine") from None
        connector = AsyncioConnector(loop, config)
        client = NetworkClient(
            config,
            metadata,
            clock or LoopClock(loop),
            connector,
            random or new_random(),
            max_in_flight=max_in_flight,
            software_version=SOFTWARE_VERSION,
        )
        return cls(client, loop, connector)

    async def wait(self, until_ms: float = inf) -> None:
        """Return after a change, or at a time; raise the internal error that closed the client."""
        self.raise_failure()
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(waiter)
        timer = None if until_ms == inf else self.clock.call_at(until_ms, lambda: _complete(waiter))
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()
        self.raise_failure()

    def wakeup(self) -> None:
        self.client.wakeup()
        self._wake()

    async def request(self, node: Node, request: Request) -> Message:
        """Send a request when the node is ready; return the response.

        Raises:
            DisconnectException: If the node cannot be reached, or the connection is lost.
            TimeoutException: If the node is not ready, or does not respond, in time.
            UnsupportedVersionException: If there is no common version.
            AuthenticationException: If authentication fails.
        """
        return await self.send(node, request, await self.ready(node, request))

    async def ready(self, node: Node, request: Request) -> float:
        """Return the time when a request can be sent to a node; raise the errors of `request`."""
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
        return now_ms

    async def send(self, node: Node, request: Request, now_ms: float) -> Message:
        future: asyncio.Future[Exchange] = self._loop.create_future()
        self.client.send(node.id, request, partial(_complete_exchange, future), now_ms)
        exchange = await future
        self.raise_failure()
        failure = exchange.failure()
        if failure is not None:
            raise failure
        assert exchange.response is not None, "the request has no response"
        return exchange.response

    async def metadata_after(self, update_version: int, deadline_ms: float) -> None:
        metadata = self.client.metadata
        while metadata.update_version <= update_version:
            metadata.raise_fatal_error()
            if self.clock.monotonic_ms() >= deadline_ms:
                raise self.timeout("metadata was not updated in time")
            await self.wait(deadline_ms)

    def timeout(self, problem: str) -> TimeoutException:
        """Return a TimeoutException that includes the last connection failure."""
        failure = self.client.last_failure
        return TimeoutException(problem if failure is None else f"{problem}; last connection failure: {failure}")

    def start(self, what: str, run: Callable[[], Coroutine[object, object, None]]) -> "asyncio.Task[None]":
        """Run a background task; its failure closes the client and reaches each caller."""

        async def watched() -> None:
            try:
                await run()
            except KafkaException as error:
                if error is not self.client.failure:
                    self.client.fail(what, error)
            except Exception as error:
                self.client.fail(what, error)

        return self._loop.create_task(watched())

    def raise_failure(self) -> None:
        if self.client.failure is not None:
            raise self.client.failure

    def raise_if_closed(self) -> None:
        self.raise_failure()
        if self.client.is_closed:
            raise KafkaException("the client is closed")

    async def close(self) -> None:
        """Close all connections; pending requests fail."""
        self.client.close()
        await self._connector.close()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            _complete(waiter)


class Turns:
    """A lock that coroutines get in the order in which they wait for it.

    Until Python 3.11.2, `asyncio.timeout` raises CancelledError in a task that was cancelled before, as one that closes
    its client may be; `asyncio.wait` never does.
    """

    def __init__(self, network: AsyncNetwork) -> None:
        self._network = network
        self._turns: list[asyncio.Future[None]] = []  # the first one holds the lock

    @asynccontextmanager
    async def take(self, deadline_ms: float) -> AsyncIterator[None]:
        """Hold the lock; raise TimeoutException if it is not free in time."""
        turn = asyncio.get_running_loop().create_future()
        self._turns.append(turn)
        try:
            if self._turns[0] is not turn:
                left_ms = max(0.0, deadline_ms - self._network.clock.monotonic_ms())
                await asyncio.wait([turn], timeout=None if left_ms == inf else left_ms / 1e3)
                if not turn.done():
                    raise self._network.timeout("an earlier request was not sent in time")
            yield
        finally:
            self._turns.remove(turn)
            if self._turns:
                _complete(self._turns[0])


@coroutine
def yield_to_loop() -> Generator[None, None, None]:
    """Yield to the event loop, so that a busy loop does not block other tasks."""
    yield


def _complete_exchange(future: asyncio.Future[Exchange], exchange: Exchange) -> None:
    if not future.done():  # the caller was cancelled
        future.set_result(exchange)


def _complete(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _connection_error(client: NetworkClient, node: Node) -> Exception:
    error, failure = client.authentication_error(node.id), client.last_failure
    reason = f": {failure.reason}" if failure is not None and failure.node == node else ""
    return error or DisconnectException(f"node {node} cannot be reached{reason}")


class AsyncioConnector:
    """A Connector of the event loop.

    Different on purpose: `send.buffer.bytes` and `receive.buffer.bytes` apply only if set; Kafka's defaults would
    disable the automatic tuning of kernels.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, config: ClientConfig) -> None:
        self._loop = loop
        self._buffers = [
            (option, config.integer(name))
            for name, option in (("send.buffer.bytes", socket.SO_SNDBUF), ("receive.buffer.bytes", socket.SO_RCVBUF))
            if config.is_set(name) and config.integer(name) >= 0
        ]
        self._tls = tls_context(config) if config.uses_tls else None
        self._tasks: set[asyncio.Task[None]] = set()  # the loop keeps only weak references

    def resolve(self, host: str, port: int, resolved: Callable[[Sequence[Address] | OSError], None]) -> Cancelable:
        """Resolve a host to all its addresses.

        Different on purpose: Kafka uses only the family of the first address. If that is IPv6, `localhost` would not
        reach a broker that listens on 127.0.0.1.
        """
        return self._start(self._resolve(host, port, resolved))

    def connect(self, address: Address, connection: Connection, failed: Callable[[Exception], None]) -> Cancelable:
        return self._start(self._connect(address, connection, failed))

    async def close(self) -> None:
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
        except (UnicodeError, OverflowError) as error:  # not a host name, or not a port
            resolved(OSError(str(error)))
            return
        resolved(list(dict.fromkeys((str(info[4][0]), port) for info in found)))

    async def _connect(self, address: Address, connection: Connection, failed: Callable[[Exception], None]) -> None:
        name = connection.node.host if self._tls is not None else None
        try:
            transport, _ = await self._loop.create_connection(
                lambda: connection, *address, ssl=self._tls, server_hostname=name
            )
        except OSError as error:
            failed(connect_error(error, uses_tls=self._tls is not None))
            return
        except (OverflowError, ValueError) as error:  # not a port, or not an address
            failed(OSError(str(error)))
            return
        sock = transport.get_extra_info("socket")
        for option, size in self._buffers:
            sock.setsockopt(socket.SOL_SOCKET, option, size)

    def _start(self, coroutine: Coroutine[object, None, None]) -> "asyncio.Task[None]":
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def connect_error(error: OSError, *, uses_tls: bool) -> Exception:
    """Distinguish a TLS failure from a connection lost in the handshake."""
    is_lost = isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) or (uses_tls and not error.errno)
    if is_lost and not isinstance(error, TimeoutError):
        return OSError(f"the broker closed the connection during the TLS handshake; {CHECK_PROTOCOL}")
    if isinstance(error, ssl.SSLError):
        return handshake_error(error)
    return OSError(os.strerror(error.errno)) if error.errno else error  # with the system's text instead of asyncio's


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return True
    return False
