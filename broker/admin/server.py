"""The admin HTTP port: `/metrics` for Prometheus, `/healthz`, `/api/v1`, and the web page.

A thread loads the HTTP stack on the first connection, so that it delays neither the start nor running clients.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from sluice.broker.server.cluster_server import ClusterServer

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

    from .operation import AdminExtension

Page = Callable[[ClusterServer], "AdminExtension"]
LoadPage = Callable[[], Page]

log = logging.getLogger("sluice.broker")

# A stop waits twice for this long. Streams check for it at least 25 times per second.
_ANSWERED_WITHIN_S = 0.25


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
        self._http = _http_server(application(self._server, page))
        await self._http.serve(sockets=[self._socket])


def _load(load_page: LoadPage | None) -> Page | None:
    # In a thread, because these imports take 250 ms.
    for name in ("starlette.applications", "uvicorn", "sluice.broker.admin.routes", "sluice.broker.admin.operations"):
        import_module(name)
    return None if load_page is None else load_page()


def _http_server(app: "Starlette") -> "uvicorn.Server":
    import uvicorn

    class Http(uvicorn.Server):
        """A server that leaves the process's signals to its command."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            """Let running requests end, and streams notice the stop.

            With a short timeout, uvicorn's method logs an error for itself and for each cancelled request.
            """
            for listening in self.servers:
                listening.close()
            for one in sockets or []:
                one.close()
            for connection in list(self.server_state.connections):
                connection.shutdown()
            await _ended(self.server_state.tasks)
            for connection in list(self.server_state.connections):
                connection.transport.abort()  # its client does not read the response
            await _ended(self.server_state.tasks)

    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    return Http(config)


async def _ended(tasks: "set[asyncio.Task[None]]") -> None:
    if tasks:
        await asyncio.wait(tasks.copy(), timeout=_ANSWERED_WITHIN_S)


def application(server: ClusterServer, page: Page | None = None) -> "Starlette":
    from starlette.applications import Starlette
    from starlette.middleware import Middleware

    from .access_control import AccessControl
    from .operation import AdminContext, AdminExtension
    from .operations import OPERATIONS
    from .routes import refusals, routes

    access_control = Middleware(AccessControl, token=server.config.text("sluice.admin.token"))
    extension = AdminExtension((), ()) if page is None else page(server)
    operations = (*OPERATIONS, *extension.operations)
    own = routes(AdminContext(server, operations), operations)
    app = Starlette(routes=[*own, *extension.routes], middleware=[access_control], exception_handlers=refusals())
    app.router.redirect_slashes = False
    return app
