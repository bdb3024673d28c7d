"""One listening socket, which fault rules can make refuse connections."""

import asyncio
import socket
from collections.abc import Callable

from sluice.config.broker_config import Endpoint


class Listener:
    def __init__(
        self,
        endpoint: Endpoint,
        factory: Callable[[], asyncio.BaseProtocol],
        bound: socket.socket,
        backlog: int,
        loop: asyncio.AbstractEventLoop,
        *,
        is_tls: bool,
    ) -> None:
        self.endpoint = endpoint
        self.is_tls = is_tls
        self._factory = factory
        self._backlog = backlog
        self._loop = loop
        self._socket = bound
        self._name = bound.getsockname()
        self._refusals = 0
        self._closed = False
        self._opening = False
        self._listening: asyncio.Server | None = None

    async def listen(self) -> None:
        self._opening = True
        self._listening = await self._loop.create_server(self._factory, sock=self._socket)
        self._opening = False
        if self._closed:
            self._close_socket()
        elif self._refusals:
            self._refuse()
        else:
            # asyncio has set the backlog to 100, which is also what it accepts per iteration; more than that may wait.
            self._socket.listen(self._backlog)

    def refuse(self) -> None:
        """Refuse new connections, as a closed port does, but keep the port reserved."""
        self._refusals += 1
        if self._listening is not None:
            self._refuse()

    async def listen_again(self) -> None:
        """Undo one `refuse`; after the last one, accept connections again."""
        self._refusals -= 1
        if not (self._refusals or self._closed or self._opening or self._listening is not None):
            self._share_port(1)
            self._socket.listen(self._backlog)
            await self.listen()

    def close(self) -> None:
        self._closed = True
        if not self._opening:
            self._close_socket()

    def _refuse(self) -> None:
        family, protocol = self._socket.family, self._socket.proto
        self._close_socket()
        if hasattr(self._loop, "bind"):  # a loop without real sockets provides its own
            self._socket = self._loop.bind(*self._name[:2], self._backlog)
            return
        self._socket = socket.socket(family, socket.SOCK_STREAM, protocol)
        self._share_port(1)  # with existing connections on it
        self._socket.setblocking(False)
        self._socket.bind(self._name)
        self._share_port(0)  # not with another listener

    def _close_socket(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        self._socket.close()

    def _share_port(self, shared: int) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, shared)
