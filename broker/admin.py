"""The admin HTTP port: `/metrics` for Prometheus, `/healthz`, and `/api/v1` (admin_*.py, by what it is about).

The HTTP stack is loaded when someone first connects, in a thread, so that neither the start nor a running client waits
for it: the port is bound from the beginning, and whoever connects early waits in its backlog.
"""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from .cluster_server import ClusterServer

log = logging.getLogger("sluice.broker")


class AdminPort:
    """The admin port of all brokers. Any address but loopback asks for `sluice.admin.token` as a bearer token."""

    def __init__(self, server: "ClusterServer", listening: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self.host, self.port = listening.getsockname()[:2]
        self._server = server
        self._socket = listening
        self._loop = loop
        self._task: asyncio.Task[None] | None = None
        self._http: uvicorn.Server | None = None
        self._stopped = False
        loop.add_reader(listening.fileno(), self._first_connection)

    async def stop(self) -> None:
        """Closes the port and what is open on it."""
        self._stopped = True
        self._loop.remove_reader(self._socket.fileno())
        if self._http is not None:
            self._http.should_exit = self._http.force_exit = True
        if self._task is not None:
            await asyncio.wait([self._task])
        self._socket.close()

    def _first_connection(self) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._task = self._loop.create_task(self._serve())

    async def _serve(self) -> None:
        await self._loop.run_in_executor(None, _load)
        if self._stopped:
            return
        self._http = _http_server(application(self._server))
        await self._http.serve(sockets=[self._socket])


def _load() -> None:
    # In a thread: what is imported here takes a quarter of a second.
    own = ("admin_cluster", "admin_journal", "metrics")
    for name in ("starlette.applications", "uvicorn", *(f"sluice.broker.{room}" for room in own)):
        import_module(name)


def _http_server(app: "Starlette") -> "uvicorn.Server":
    import uvicorn

    class Http(uvicorn.Server):
        """Leaves the process's signals to the command that runs the broker."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=0)
    return Http(config)


def application(server: "ClusterServer") -> "Starlette":
    """The HTTP application of a cluster."""
    from hmac import compare_digest

    from prometheus_client.exposition import choose_encoder
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    from . import admin_cluster, admin_faults, admin_journal, admin_quotas, admin_scenarios
    from .metrics import registry

    metrics = registry(server.servers)
    token = server.config.text("sluice.admin.token")

    def may_read(request: "Request") -> bool:
        given = request.headers.get("authorization", "")
        return not token or compare_digest(given.encode(), f"Bearer {token}".encode())

    async def get_metrics(request: "Request") -> "Response":
        if not may_read(request):
            return _unauthorized()
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(metrics), headers={"content-type": content_type})

    async def get_health(request: "Request") -> "Response":
        # Open to everyone: an orchestrator's probe has no token, and the answer tells nothing.
        return JSONResponse({"status": "ok"})

    def _unauthorized() -> "Response":
        message = "this port asks for the bearer token that sluice.admin.token names"
        return JSONResponse({"error": message}, status_code=401, headers={"www-authenticate": "Bearer"})

    def refused(request: "Request") -> "Response | None":
        return None if may_read(request) else _unauthorized()

    own = [Route("/metrics", get_metrics), Route("/healthz", get_health)]
    rooms = (admin_cluster, admin_faults, admin_journal, admin_quotas, admin_scenarios)
    return Starlette(routes=[*own, *(route for room in rooms for route in room.routes(server, refused))])
