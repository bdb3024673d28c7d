"""One listening socket, which fault rules can make refuse connections."""

import asyncio
import errno
import logging
import os
import socket
import sys
from collections.abc import Callable
from math import inf

if sys.platform != "win32":
    import resource

from sluice.config.broker_config import Endpoint

from .socket_transport import SocketTransport

log = logging.getLogger("sluice.broker")

# Per event-loop iteration: each takes 0.1 ms.
_ACCEPTED_AT_ONCE = 16
# As in asyncio: without file descriptors or memory, the next attempt is after this time.
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_RETRY_AFTER_S = 1.0
# Descriptors left for files, such as segments and modules; with a low limit, an eighth of it.
_RESERVED_DESCRIPTORS = 64


def most_descriptors() -> float:
    """Return the number of open files at which new connections wait."""
    if sys.platform == "win32":
        return inf
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return inf if limit == resource.RLIM_INFINITY else limit - min(_RESERVED_DESCRIPTORS, limit // 8)


class Listener:
    def __init__(
        self,
        endpoint: Endpoint,
        factory: Callable[[], asyncio.BufferedProtocol],
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
        self._is_accepting = False
        self._is_paused = False  # because few file descriptors are left
        self._most_descriptors = most_descriptors()
        self._listening: asyncio.Server | None = None  # of a loop that accepts itself

    async def listen(self) -> None:
        if not hasattr(self._loop, "bind") and self._accept_here():
            return
        self._opening = True
        self._listening = await self._loop.create_server(self._factory, sock=self._socket)
        self._opening = False
        if self._closed:
            self._close_socket()
        elif self._refusals:
            self._refuse()
        else:
            # asyncio has set the backlog to 100.
            self._socket.listen(self._backlog)

    def refuse(self) -> None:
        """Refuse new connections, as a closed port does, but reserve the port."""
        self._refusals += 1
        if self._is_open:
            self._refuse()

    async def listen_again(self) -> None:
        """Undo one `refuse`; after the last one, accept connections again."""
        self._refusals -= 1
        if not (self._refusals or self._closed or self._opening or self._is_open):
            self._share_port(1)
            self._socket.listen(self._backlog)
            await self.listen()

    def close(self) -> None:
        self._closed = True
        if not self._opening:
            self._close_socket()

    @property
    def _is_open(self) -> bool:
        return self._is_accepting or self._listening is not None

    def _accept_here(self) -> bool:
        """Accept connections; return False if the loop has no readers (Windows)."""
        try:
            self._loop.add_reader(self._socket.fileno(), self._accept)
        except NotImplementedError:
            return False
        self._is_accepting = True
        return True

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                self._pause(str(error))
                return
            if accepted.fileno() >= self._most_descriptors:  # the system assigns the lowest free number
                self._pause("few file descriptors are left")
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            SocketTransport(self._loop, accepted, self._factory(), peer).start()
            if not self._is_accepting or self._is_paused:
                return

    def _pause(self, reason: str) -> None:
        self._is_paused = True
        log.error("connections wait", extra={"listener": self.endpoint.name, "reason": reason})
        self._loop.remove_reader(self._socket.fileno())
        self._loop.call_later(_RETRY_AFTER_S, self._accept_again)

    def _accept_again(self) -> None:
        if not self._is_accepting:
            self._is_paused = False
        elif not self._has_descriptors():
            self._loop.call_later(_RETRY_AFTER_S, self._accept_again)
        else:
            self._is_paused = False
            self._loop.add_reader(self._socket.fileno(), self._accept)

    def _has_descriptors(self) -> bool:
        try:
            lowest_free = os.dup(self._socket.fileno())
        except OSError:
            return False
        os.close(lowest_free)
        return lowest_free < self._most_descriptors

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
        if self._is_accepting:
            self._is_accepting = False
            self._loop.remove_reader(self._socket.fileno())
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        self._socket.close()

    def _share_port(self, shared: int) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, shared)
