"""The network of a VirtualLoop: hosts with names, TCP between them in memory, and what can go wrong on the way.

A *host* is a name. Code runs as a host (`with network.host("client-1"):`, and all tasks made in it), `localhost` if it
says nothing. A *place* is a host or `host:port`, where a server listens, or `*`. What is set for a pair of places
holds for connections between them, whoever opened them, at once for those that are open. Different on purpose from a
real network: `localhost` (and 127.0.0.1, ::1) is one host that every other reaches, so that brokers can be where they
are without one, and every name has an address.
"""

import asyncio
import errno
import ipaddress
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random  # noqa: TID251  (the type of what is injected; nothing is drawn from the module itself)
from typing import TypeVar

from .link import INSTANT, Link
from .transport import MemorySocket, MemoryTransport

P = TypeVar("P", bound=asyncio.BaseProtocol)
ANY = "*"
# Linux sends a SYN again 6 times (tcp_syn_retries).
CONNECT_TIMEOUT_S = 127.0
_LOCALHOST = "localhost"
_LOOPBACK = frozenset(("", _LOCALHOST, "127.0.0.1", "::1"))
_EVERYWHERE = frozenset(("0.0.0.0", "::"))
# Where Linux begins to pick free ports; servers and clients from one row, as there.
_FIRST_FREE_PORT = 32768

_host: ContextVar[str] = ContextVar("host", default=_LOCALHOST)


@dataclass(frozen=True, slots=True)
class _Between:
    """Two places, in any order."""

    one: str
    other: str

    def holds(self, client: str, server: str, port: int) -> bool:
        """Whether a connection from `client` to `server:port` is between them."""
        return (_is_at(self.one, client) and _is_at(self.other, server, port)) or (
            _is_at(self.other, client) and _is_at(self.one, server, port)
        )


class Path:
    """Where one connection goes, and how bytes pass there now."""

    def __init__(self, network: "Network", client: str, server: str, port: int) -> None:
        self.random = network.random
        self.client, self.server, self.port = client, server, port
        self.ends: list[MemoryTransport] = []  # those that are open
        self.is_forgotten = False
        self._network = network
        self.update()

    def update(self) -> None:
        """The network has changed."""
        self.link = self._network.link_of(self.client, self.server, self.port)
        self.is_instant = self.link == INSTANT
        self.is_blocked = self.is_forgotten or self._network.is_partitioned(self.client, self.server, self.port)
        if not self.is_blocked:
            for end in self.ends:
                end.wire.release()

    def is_between(self, between: _Between) -> bool:
        return between.holds(self.client, self.server, self.port)

    def left(self) -> None:
        """An end is closed; what it has sent still arrives."""
        if all(each.is_closed for each in self.ends):
            self._network.closed(self)
            self.is_blocked = False  # nobody is there to be kept from it
            for each in self.ends:
                each.wire.release()


class MemoryServer(asyncio.AbstractServer):
    """What `create_server` returns: it listens at one host and port."""

    def __init__(
        self, network: "Network", factory: Callable[[], asyncio.BaseProtocol], listening: MemorySocket
    ) -> None:
        self.factory = factory
        self._network = network
        self._listening = listening
        self._is_serving = False
        self._closed: asyncio.Future[None] = network.loop.create_future()

    @property
    def sockets(self) -> tuple[MemorySocket, ...]:
        """One, that can be asked for its address; none when the server is closed."""
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
        """Connections that were taken stay open, as with asyncio."""
        if not self._closed.done():
            self._is_serving = False
            self._closed.set_result(None)
            self._listening.close()

    async def wait_closed(self) -> None:
        await asyncio.shield(self._closed)


class Network:
    """Hosts, and the state of what is between them. Of one VirtualLoop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self._bound: dict[tuple[str, int], MemoryServer | None] = {}  # by address; None: nobody listens there yet
        self._paths: dict[Path, None] = {}  # as a set that keeps its order
        self._links: list[tuple[_Between, Link]] = []
        self._partitions: list[_Between] = []
        self._refusing: set[str] = set()
        self._changed: asyncio.Future[None] | None = None  # of those who connect where nothing passes
        self._addresses: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._free_ports = count(_FIRST_FREE_PORT)

    # -- what a test calls -------------------------------------------------------------------------------------------

    @contextmanager
    def host(self, name: str) -> Iterator[None]:
        """What runs within, and the tasks it makes, runs on the host `name`."""
        token = _host.set(_canonical(name))
        try:
            yield
        finally:
            _host.reset(token)

    def link(self, one: str, other: str = ANY, **how: float | None) -> None:
        """Sets how bytes pass between two places, by the fields of `Link`. Later calls go before earlier ones; without
        fields they pass at once.
        """
        between = _between(one, other)
        self._links = [each for each in self._links if each[0] != between]
        self._links.append((between, Link(**how)))  # type: ignore[arg-type]  # its fields say what they take
        self._update()

    def partition(self, one: str, other: str = ANY) -> None:
        """Nothing passes between two places. Open connections stay open, and new ones are tried for 127 s."""
        self._partitions.append(_between(one, other))
        self._update()

    def heal(self, one: str = ANY, other: str = ANY) -> None:
        """Ends the partition of these two places, without any: all. What was sent meanwhile arrives."""
        between = _between(one, other)
        everything = between == _Between(ANY, ANY)
        self._partitions = [each for each in self._partitions if not everything and each != between]
        self._update()

    def refuse(self, place: str) -> None:
        """New connections to a place are refused, as if nobody listened there; open ones go on."""
        self._refusing.add(_canonical(place))

    def accept(self, place: str) -> None:
        """Ends `refuse`."""
        self._refusing.discard(_canonical(place))

    def reset(self, one: str, other: str = ANY) -> int:
        """Breaks the open connections between two places: both ends get a reset. Returns how many."""
        return self._do_with_open(_between(one, other), _reset)

    def forget(self, one: str, other: str = ANY) -> int:
        """Leaves the open connections between two places half-open, as a middle box does that has forgotten them:
        neither end is told, and nothing passes on them any more. Returns how many.
        """
        return self._do_with_open(_between(one, other), _forget)

    def connections(self, one: str = ANY, other: str = ANY) -> int:
        """How many connections are open between two places, those included that only one end takes for open."""
        return self._do_with_open(_between(one, other), lambda path: None)

    # -- what the loop and its connections call ----------------------------------------------------------------------

    async def connect(self, factory: Callable[[], P], host: str, port: int) -> tuple[MemoryTransport, P]:
        """Connects from the host of whoever calls. Raises ConnectionRefusedError, or TimeoutError after 127 s."""
        path = Path(self, _host.get(), self.name(host), port)
        where = f"Connect call failed {self.address(host), port}"
        give_up_at = self.loop.time() + CONNECT_TIMEOUT_S
        await self._pass(path, give_up_at, where)
        server = self._server_at(path)
        if server is None:
            await self._pass(path, give_up_at, where)
            raise ConnectionRefusedError(errno.ECONNREFUSED, where)
        here, there = (self.address(path.client), next(self._free_ports)), (self.address(path.server), port)
        near, far = MemoryTransport(self.loop, path, here, there), MemoryTransport(self.loop, path, there, here)
        near.peer, far.peer = far, near
        path.ends = [near, far]
        self._paths[path] = None
        self.loop.call_soon(far.start, server.factory())
        try:
            await self._pass(path, give_up_at, where)
            protocol = factory()
        except BaseException:  # cancelled, for one
            near.abort()
            raise
        near.start(protocol)
        return near, protocol

    def bind(self, host: str, port: int) -> MemorySocket:
        """Takes an address for a server; port 0 is the next free one. Raises OSError."""
        address = self.address(_host.get() if host in _EVERYWHERE else host)
        if port == 0:
            port = next(free for free in self._free_ports if (address, free) not in self._bound)
        if (address, port) in self._bound:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self._bound[address, port] = None
        return MemorySocket((address, port), release=partial(self._bound.pop, (address, port), None))

    def serve(self, address: tuple[str, int], server: MemoryServer) -> None:
        """Connections to a bound address are taken from now on."""
        self._bound[address] = server

    def address(self, host: str) -> str:
        """The address of a host: 127.0.0.1, its own if it is one, else the next of 10.0.0.0/16."""
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
        """The host that a name or an address stands for."""
        return self._names.get(host) or _canonical(host)

    def link_of(self, client: str, server: str, port: int) -> Link:
        """How bytes pass from `client` to `server:port`, and back."""
        return next((link for between, link in reversed(self._links) if between.holds(client, server, port)), INSTANT)

    def is_partitioned(self, client: str, server: str, port: int) -> bool:
        """Whether nothing passes."""
        return any(each.holds(client, server, port) for each in self._partitions)

    def closed(self, path: Path) -> None:
        """Both ends of a connection are closed."""
        self._paths.pop(path, None)

    def _server_at(self, path: Path) -> MemoryServer | None:
        """Who takes the connection; None: it is refused."""
        if any(_is_at(place, path.server, path.port) for place in self._refusing):
            return None
        return self._bound.get((self.address(path.server), path.port))

    async def _pass(self, path: Path, give_up_at: float, where: str) -> None:
        """What opens a connection goes one way."""
        path.update()  # not known to the network yet
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


def _forget(path: Path) -> None:
    path.is_forgotten = True
    path.update()


def _canonical(place: str) -> str:
    """A place by the one name that it has here."""
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
