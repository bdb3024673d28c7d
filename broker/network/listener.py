"""One socket on which connections are taken, or refused while fault rules want that."""

import asyncio
import socket
from collections.abc import Callable

from sluice.config.broker_config import Endpoint


class Listener:
    """One socket on which connections are taken."""

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
        self.endpoint = endpoint  # with the port that was bound
        self.is_tls = is_tls
        self._factory = factory
        self._backlog = backlog
        self._loop = loop
        self._socket = bound  # the one that has the port
        self._name = bound.getsockname()
        self._refusals = 0  # how many rules want it to refuse
        self._closed = False
        self._opening = False  # asyncio is being given the socket
        self._listening: asyncio.Server | None = None

    async def listen(self) -> None:
        """Takes connections."""
        self._opening = True
        self._listening = await self._loop.create_server(self._factory, sock=self._socket)
        self._opening = False
        if self._closed:
            self._let_go()
        elif self._refusals:
            self._refuse()
        else:
            # asyncio has made the queue 100 long, which is what it accepts in one turn; more than that may wait.
            self._socket.listen(self._backlog)

    def refuse(self) -> None:
        """Whoever connects from now on is refused, as at a port where nobody listens; but the port stays ours."""
        self._refusals += 1
        if self._listening is not None:
            self._refuse()

    async def listen_again(self) -> None:
        """The same number of times as `refuse`, and connections are taken again."""
        self._refusals -= 1
        if not (self._refusals or self._closed or self._opening or self._listening is not None):
            self._share_port(1)
            self._socket.listen(self._backlog)
            await self.listen()

    def close(self) -> None:
        """Lets go of the port."""
        self._closed = True
        if not self._opening:
            self._let_go()

    def _refuse(self) -> None:
        family, protocol = self._socket.family, self._socket.proto
        self._let_go()
        if hasattr(self._loop, "bind"):  # a loop without real sockets gives its own
            self._socket = self._loop.bind(*self._name[:2], self._backlog)
            return
        self._socket = socket.socket(family, socket.SOCK_STREAM, protocol)
        self._share_port(1)  # with connections that were on it
        self._socket.setblocking(False)
        self._socket.bind(self._name)
        self._share_port(0)  # with no other listener

    def _let_go(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        self._socket.close()

    def _share_port(self, shared: int) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, shared)
