"""The admin port's routes, made of the table of operations, and what is said where there is none."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route

from .operation import AdminRoom, Operation, problem

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

_Handler = Callable[[Request, Exception], Awaitable["Response"]]


def routes(room: AdminRoom, operations: Sequence[Operation]) -> list[Route]:
    """One for each path."""
    by_path = groupby(operations, key=lambda one: one.path)
    return [Route(path, _Path(room, [*those])) for path, those in by_path]


class _Path:
    """All that can be done at one path, by method."""

    def __init__(self, room: AdminRoom, operations: Sequence[Operation]) -> None:
        self._room = room
        self._operations = {one.method: one for one in operations}
        if "GET" in self._operations:
            self._operations["HEAD"] = self._operations["GET"]
        assert len(operations) == len({one.method for one in operations}), "a method is served once"

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """One request."""
        operation = self._operations.get(scope["method"])
        response = (
            self._refused(scope["method"], scope["path"])
            if operation is None
            else await operation.respond(self._room, Request(scope, receive))
        )
        await response(scope, receive, send)

    def _refused(self, method: str, path: str) -> "Response":
        allowed = ", ".join(self._operations)
        return problem(405, f"{method} {path}: accepted here are {allowed}", headers={"allow": allowed})


def refusals() -> Mapping[int | type[Exception], _Handler]:
    """What is answered where there is no route, or where one fails."""

    async def of_http(request: Request, error: Exception) -> "Response":
        assert isinstance(error, HTTPException)
        words = f"{request.scope['path']}: there is no such path; those there are stand in /api/openapi.json"
        return problem(error.status_code, words if error.status_code == 404 else error.detail)

    async def of_anything(request: Request, error: Exception) -> "Response":
        return problem(500, "the broker failed at this, which is a mistake of its own; its log says more")

    return {HTTPException: of_http, Exception: of_anything}
