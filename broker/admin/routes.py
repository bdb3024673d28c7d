"""The routes of the admin port, generated from its operations."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from .operation import AdminContext, Operation, problem

_Handler = Callable[[Request, Exception], Awaitable[Response]]


def routes(context: AdminContext, operations: Sequence[Operation]) -> list[Route]:
    by_path = groupby(operations, key=lambda one: one.path)
    return [Route(path, _Path(context, [*those])) for path, those in by_path]


class _Path:
    def __init__(self, context: AdminContext, operations: Sequence[Operation]) -> None:
        self._context = context
        self._operations = {one.method: one for one in operations}
        if "GET" in self._operations:
            self._operations["HEAD"] = self._operations["GET"]
        assert len(operations) == len({one.method for one in operations}), "a method is served once"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = self._operations.get(scope["method"])
        response = (
            self._refused(scope["method"], scope["path"])
            if operation is None
            else await operation.respond(self._context, Request(scope, receive))
        )
        await response(scope, receive, send)

    def _refused(self, method: str, path: str) -> Response:
        allowed = ", ".join(self._operations)
        return problem(405, f"{method} {path}: method not allowed; expected {allowed}", headers={"allow": allowed})


def refusals() -> Mapping[int | type[Exception], _Handler]:
    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        words = f"{request.scope['path']}: there is no such path; /api/openapi.json lists all paths"
        return problem(error.status_code, words if error.status_code == 404 else error.detail)

    async def of_anything(request: Request, error: Exception) -> Response:
        return problem(500, "internal error; see the broker's log")

    return {HTTPException: of_http, Exception: of_anything}
