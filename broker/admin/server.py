"""The admin HTTP port: `/metrics` for Prometheus, `/healthz`, `/api/v1`, and the web page.

A thread loads the HTTP stack on the first connection, so that it delays neither the start nor running clients.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from sluice.broker.server.cluster_server import ClusterServer

if TYPE_CHECKING:
    import uvicorn

    from .operation import AdminExtension

Page = Callable[[ClusterServer], "AdminExtension"]
LoadPage = Callable[[], Page]

log = logging.getLogger("sluice.broker")


class AdminPort:
    """The admin port of all brokers. Addresses other than loopback require `sluice.admin.token` as a bearer token."""

    def __init__(
        self,
        server: ClusterServer,
        listening: socket.socket,
        loop: asyncio.AbstractEventLoop,
        load_page: LoadPage | None,
    ) -> None:
        """Listen on a bound socket; `load_page` imports the web page, if any."""
        self.host, self.port = listening.getsockname()[:2]
        self._server = server
        self._socket = listening
        self._loop = loop
        self._load_page = load_page
        self._task: asyncio.Task[None] | None = None
        self._http: uvicorn.Server | None = None
        self._stopped = False
        loop.add_reader(listening.fileno(), self._first_connection)

    async def stop(self) -> None:
        self._stopped = True
        self._loop.remove_reader(self._socket.fileno())
        if self._http is not None:
            self._http.should_exit = True
        if self._task is not None:
            await asyncio.wait([self._task])
        self._socket.close()

    def _first_connection(self) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._task = self._loop.create_task(self._serve())

    async def _serve(self) -> None:
        page = await self._loop.run_in_executor(None, _load, self._load_page)
        if self._stopped:
            return
        from .application import application, http_server

        self._http = http_server(application(self._server, page))
        await self._http.serve(sockets=[self._socket])


def _load(load_page: LoadPage | None) -> Page | None:
    import_module("sluice.broker.admin.application")  # in a thread, because it takes 250 ms
    return None if load_page is None else load_page()
