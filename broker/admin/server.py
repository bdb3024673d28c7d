"""The admin HTTP port: `/metrics` for Prometheus, `/healthz`, `/api/v1`, a web page.

What can be asked are the rows of operations.py, from the admin_*.py by what they are about; who may ask is
access_control.py.

The HTTP stack is loaded when someone first connects, in a thread, so that neither the start nor a running client waits
for it: the port is bound from the beginning, and whoever connects early waits in its backlog.
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

    from .operation import Furniture

# Returns what the port serves of the web page.
Page = Callable[[ClusterServer], "Furniture"]
# Imports it.
LoadPage = Callable[[], Page]

log = logging.getLogger("sluice.broker")

# Twice this, and the broker has still stopped within a second. Streams look 25 times a second whether it stops.
_ANSWERED_WITHIN_S = 0.25


class AdminPort:
    """The admin port of all brokers. Any address but loopback asks for `sluice.admin.token` as a bearer token."""

    def __init__(
        self,
        server: ClusterServer,
        listening: socket.socket,
        loop: asyncio.AbstractEventLoop,
        load_page: LoadPage | None,
    ) -> None:
        """`load_page`: of what is above the broker, and so handed in: the web page, if there is to be one."""
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
        """Closes the port and what is open on it."""
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
    # In a thread: what is imported here takes a quarter of a second.
    for name in ("starlette.applications", "uvicorn", "sluice.broker.admin.routes", "sluice.broker.admin.operations"):
        import_module(name)
    return None if load_page is None else load_page()


def _http_server(app: "Starlette") -> "uvicorn.Server":
    import uvicorn

    class Http(uvicorn.Server):
        """Leaves the process's signals to the command that runs the broker."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            """What is answered may end, and streams see that the broker stops. uvicorn's own, where it is to give them
            little time, tells of an error each time, and of another one in what it has cancelled.
            """
            for listening in self.servers:
                listening.close()
            for one in sockets or []:
                one.close()
            for connection in list(self.server_state.connections):
                connection.shutdown()
            await _ended(self.server_state.tasks)
            for connection in list(self.server_state.connections):
                connection.transport.abort()  # its client does not read what it is sent
            await _ended(self.server_state.tasks)

    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    return Http(config)


async def _ended(tasks: "set[asyncio.Task[None]]") -> None:
    if tasks:
        await asyncio.wait(tasks.copy(), timeout=_ANSWERED_WITHIN_S)


def application(server: ClusterServer, page: Page | None = None) -> "Starlette":
    """The HTTP application of a cluster, with the web page or without."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware

    from .access_control import Gate
    from .operation import AdminRoom, Furniture
    from .operations import OPERATIONS
    from .routes import refusals, routes

    gate = Middleware(Gate, token=server.config.text("sluice.admin.token"))
    of_page = Furniture((), ()) if page is None else page(server)
    operations = (*OPERATIONS, *of_page.operations)
    own = routes(AdminRoom(server, operations), operations)
    app = Starlette(routes=[*own, *of_page.routes], middleware=[gate], exception_handlers=refusals())
    app.router.redirect_slashes = False  # a path is there or not
    return app
