"""The HTTP application of the admin port, and its server; loaded with the first connection."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware

from sluice.broker.admin.resources import cluster, faults, journal, metrics, observe, quotas, scenarios
from sluice.broker.server.cluster_server import ClusterServer

from .access_control import AccessControl
from .openapi import OPERATIONS as OF_THE_DOCUMENT
from .operation import AdminContext, AdminExtension, Operation
from .routes import refusals, routes

# A stop waits twice for this long. Streams check for it at least 25 times per second.
_ANSWERED_WITHIN_S = 0.25
# In the order of path matching.
OPERATIONS: tuple[Operation, ...] = (
    *metrics.OPERATIONS,
    *OF_THE_DOCUMENT,
    *cluster.OPERATIONS,
    *faults.OPERATIONS,
    *journal.OPERATIONS,
    *observe.OPERATIONS,
    *quotas.OPERATIONS,
    *scenarios.OPERATIONS,
)


def application(server: ClusterServer, page: Callable[[ClusterServer], AdminExtension] | None = None) -> Starlette:
    access_control = Middleware(AccessControl, token=server.config.text("sluice.admin.token"))
    extension = AdminExtension((), ()) if page is None else page(server)
    operations = (*OPERATIONS, *extension.operations)
    own = routes(AdminContext(server, operations), operations)
    app = Starlette(routes=[*own, *extension.routes], middleware=[access_control], exception_handlers=refusals())
    app.router.redirect_slashes = False
    return app


def http_server(app: Starlette) -> uvicorn.Server:
    return _Http(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))


class _Http(uvicorn.Server):
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


async def _ended(tasks: "set[asyncio.Task[None]]") -> None:
    if tasks:
        await asyncio.wait(tasks.copy(), timeout=_ANSWERED_WITHIN_S)
