"""The in-memory network of a VirtualLoop: named hosts, TCP connections and network failures.

A *host* is a name. Code runs on a host with `network.host("client-1")`; the default is `localhost`. A *place* is a
host, a server's `host:port`, or `*`. Settings for two places apply to all connections between them, in either
direction. Different on purpose from a real network: `localhost` (and 127.0.0.1, ::1) is one host that all others reach,
and every name has an address.
"""

import asyncio
import errno
import ipaddress
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random  # noqa: TID251  (only the type of an injected object)
from typing import TypeVar

from .link import INSTANT, Link
from .transport import MemorySocket, MemoryTransport

P = TypeVar("P", bound=asyncio.BaseProtocol)
ANY = "*"
# Linux retries a SYN 6 times (tcp_syn_retries).
CONNECT_TIMEOUT_S = 127.0
_LOCALHOST = "localhost"
_LOOPBACK = frozenset(("", _LOCALHOST, "127.0.0.1", "::1"))
_EVERYWHERE = frozenset(("0.0.0.0", "::"))
# Linux's first ephemeral port; servers and clients share the range.
_FIRST_FREE_PORT = 32768

HOST: ContextVar[str] = ContextVar("host", default=_LOCALHOST)  # of the running code


@dataclass(frozen=True, slots=True)
class _Between:
    one: str
    other: str

    def holds(self, client: str, server: str, port: int) -> bool:
        return (_is_at(self.one, client) and _is_at(self.other, server, port)) or (
            _is_at(self.other, client) and _is_at(self.one, server, port)
        )


class Path:
    def __init__(self, network: "Network", client: str, server: str, port: int) -> None:
        self.random = network.random
        self.client, self.server, self.port = client, server, port
        self.ends: list[MemoryTransport] = []  # open ones
        self.is_forgotten = False
        self._network = network
        self.update()

    def update(self) -> None:
        self.link = self._network.link_of(self.client, self.server, self.port)
        self.is_instant = self.link == INSTANT
        self.is_blocked = self.is_forgotten or self._network.is_partitioned(self.client, self.server, self.port)
        if not self.is_blocked:
            for end in self.ends:
                end.wire.release()

    def is_between(self, between: _Between) -> bool:
        return between.holds(self.client, self.server, self.port)

    def left(self) -> None:
        if all(each.is_closed for each in self.ends):
            self._network.closed(self)
            self.is_blocked = False  # both ends are closed
            for each in self.ends:
                each.wire.release()


class MemoryServer(asyncio.AbstractServer):
    """The result of `create_server`, which listens at one host and port."""

    def __init__(
        self, network: "Network", factory: Callable[[], asyncio.BaseProtocol], listening: MemorySocket
    ) -> None:
        self.factory = factory
        self.context = copy_context()
        self._network = network
        self._listening = listening
        self._is_serving = False
        self._closed: asyncio.Future[None] = network.loop.create_future()

    @property
    def sockets(self) -> tuple[MemorySocket, ...]:
        """The listening socket, for its address; empty when the server is closed."""
        return () if self._closed.done() else (self._listening,)

    async def start_serving(self) -> None:
        self._is_serving = True
        self._network.serve(self._listening.getsockname(), self)

    async def serve_forever(self) -> None:
        await self.start_serving()
        try:
            await self._closed
        finally:
            self.close()

    def is_serving(self) -> bool:
        return self._is_serving

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._network.loop

    def close(self) -> None:
        """Stop listening; accepted connections stay open, as in asyncio."""
        if not self._closed.done():
            self._is_serving = False
            self._closed.set_result(None)
            self._listening.close()

    async def wait_closed(self) -> None:
        await asyncio.shield(self._closed)


class Network:
    """The hosts of one VirtualLoop, and the state of the network between them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self._bound: dict[tuple[str, int], MemoryServer | None] = {}  # by address; None: bound, not listening yet
        self._paths: dict[Path, None] = {}  # an ordered set
        self._links: list[tuple[_Between, Link]] = []
        self._partitions: list[_Between] = []
        self._refusing: set[str] = set()
        self._changed: asyncio.Future[None] | None = None  # awaited by connection attempts during a partition
        self._addresses: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._free_ports = count(_FIRST_FREE_PORT)
        self.on_connect: Callable[[], None] | None = None  # called at each attempt

    # -- for tests ---------------------------------------------------------------------------------------------------

    @contextmanager
    def host(self, name: str) -> Iterator[None]:
        """Run the block, and tasks created in it, on the host `name`."""
        token = HOST.set(_canonical(name))
        try:
            yield
        finally:
            HOST.reset(token)

    @property
    def current_host(self) -> str:
        """The host of the running code."""
        return HOST.get()

    def link(self, one: str, other: str = ANY, **how: float | None) -> None:
        """Set the fields of `Link` between two places; without fields, an instant link. Later calls take precedence."""
        between = _between(one, other)
        self._links = [each for each in self._links if each[0] != between]
        self._links.append((between, Link(**how)))  # type: ignore[arg-type]  # Link defines the types
        self._update()

    def partition(self, one: str, other: str = ANY) -> None:
        """Block traffic between two places. Open connections stay open; new ones time out after 127 s."""
        self._partitions.append(_between(one, other))
        self._update()

    def heal(self, one: str = ANY, other: str = ANY) -> None:
        """End the partition of two places, or all partitions. Delayed traffic arrives."""
        between = _between(one, other)
        everything = between == _Between(ANY, ANY)
        self._partitions = [each for each in self._partitions if not everything and each != between]
        self._update()

    def refuse(self, place: str) -> None:
        """Refuse new connections to a place, as if no server listened there; open ones stay."""
        self._refusing.add(_canonical(place))

    def accept(self, place: str) -> None:
        """End the effect of `refuse`."""
        self._refusing.discard(_canonical(place))

    def reset(self, one: str, other: str = ANY) -> int:
        """Reset the open connections between two places; return their number."""
        return self._do_with_open(_between(one, other), _reset)

    def forget(self, one: str, other: str = ANY) -> int:
        """Make the open connections between two places half-open; return their number.

        As if a middlebox lost its state: traffic is dropped, and neither end is notified.
        """
        return self._do_with_open(_between(one, other), _forget)

    def abort(self) -> None:
        """Close all connections at once, as the end of the machine does."""
        self._do_with_open(_between(ANY, ANY), _abort)

    def connections(self, one: str = ANY, other: str = ANY) -> int:
        """Return the number of open connections between two places, including half-open ones."""
        return self._do_with_open(_between(one, other), lambda path: None)

    def unclosed(self, client: str) -> int:
        """Return the number of connections that a client has not closed, whether or not the server has."""
        return sum(path.client == client and not path.ends[0].is_closed for path in self._paths)

    # -- for the loop and its connections ----------------------------------------------------------------------------

    async def connect(self, factory: Callable[[], P], host: str, port: int) -> tuple[MemoryTransport, P]:
        """Connect from the current host. Raises ConnectionRefusedError, or TimeoutError after 127 s."""
        path = Path(self, HOST.get(), self.name(host), port)
        if self.on_connect is not None:
            self.on_connect()
        where = f"Connect call failed {self.address(host), port}"
        give_up_at = self.loop.time() + CONNECT_TIMEOUT_S
        await self._pass(path, give_up_at, where)
        server = self._server_at(path)
        if server is None:
            await self._pass(path, give_up_at, where)
            raise ConnectionRefusedError(errno.ECONNREFUSED, where)
        here, there = (self.address(path.client), next(self._free_ports)), (self.address(path.server), port)
        near = MemoryTransport(self.loop, path, here, there, copy_context())
        far = MemoryTransport(self.loop, path, there, here, server.context)
        near.peer, far.peer = far, near
        near.wire.context, far.wire.context = far.context, near.context
        path.ends = [near, far]
        self._paths[path] = None
        self.loop.call_soon(far.start, far.context.run(server.factory), context=far.context)
        try:
            await self._pass(path, give_up_at, where)
            protocol = factory()
        except BaseException:  # such as a cancellation
            near.abort()
            raise
        near.start(protocol)
        return near, protocol

    def bind(self, host: str, port: int) -> MemorySocket:
        """Bind an address for a server; port 0 picks the next free one. Raises OSError."""
        address = self.address(HOST.get() if host in _EVERYWHERE else host)
        if port == 0:
            port = next(free for free in self._free_ports if (address, free) not in self._bound)
        if (address, port) in self._bound:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self._bound[address, port] = None
        return MemorySocket((address, port), release=partial(self._bound.pop, (address, port), None))

    def serve(self, address: tuple[str, int], server: MemoryServer) -> None:
        self._bound[address] = server

    def address(self, host: str) -> str:
        """Return the address of a host: 127.0.0.1, the name if it is an address, else the next of 10.0.0.0/16."""
        name = _canonical(host)
        if name == _LOCALHOST:
            return "127.0.0.1"
        if _is_address(name):
            return name
        if name not in self._addresses:
            number = len(self._addresses) + 1
            self._addresses[name] = address = f"10.0.{number // 256}.{number % 256}"
            self._names[address] = name
        return self._addresses[name]

    def name(self, host: str) -> str:
        return self._names.get(host) or _canonical(host)

    def link_of(self, client: str, server: str, port: int) -> Link:
        return next((link for between, link in reversed(self._links) if between.holds(client, server, port)), INSTANT)

    def is_partitioned(self, client: str, server: str, port: int) -> bool:
        return any(each.holds(client, server, port) for each in self._partitions)

    def closed(self, path: Path) -> None:
        self._paths.pop(path, None)

    def _server_at(self, path: Path) -> MemoryServer | None:
        """Return None for a refused connection."""
        if any(_is_at(place, path.server, path.port) for place in self._refusing):
            return None
        return self._bound.get((self.address(path.server), path.port))

    async def _pass(self, path: Path, give_up_at: float, where: str) -> None:
        """Wait for one direction of a connection handshake."""
        path.update()  # it is not in _paths yet
        while path.is_blocked:
            if self._changed is None:
                self._changed = self.loop.create_future()
            await asyncio.wait([self._changed], timeout=give_up_at - self.loop.time())
            if self.loop.time() >= give_up_at:
                raise TimeoutError(errno.ETIMEDOUT, where)
            path.update()
        await asyncio.sleep(path.link.delay_s(self.random))  # noqa: TID251  (time is virtual here)

    def _update(self) -> None:
        for path in list(self._paths):
            path.update()
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None

    def _do_with_open(self, between: _Between, do: Callable[[Path], None]) -> int:
        found = [path for path in self._paths if path.is_between(between)]
        for path in found:
            do(path)
        return len(found)


def _reset(path: Path) -> None:
    for end in path.ends:
        end.reset()


def _abort(path: Path) -> None:
    for end in path.ends:
        end.abort()


def _forget(path: Path) -> None:
    path.is_forgotten = True
    path.update()


def _canonical(place: str) -> str:
    host, colon, port = place.rpartition(":")
    if colon and port.isdecimal() and (":" not in host or host.startswith("[")):
        return f"{_canonical(host.strip('[]'))}:{port}"
    return _LOCALHOST if place in _LOOPBACK else place


def _between(one: str, other: str) -> _Between:
    return _Between(*sorted((_canonical(one), _canonical(other))))


def _is_at(place: str, host: str, port: int | None = None) -> bool:
    return place in (ANY, host) or (port is not None and place == f"{host}:{port}")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
