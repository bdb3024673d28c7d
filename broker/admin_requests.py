"""What parts of the admin API have in common: who may ask, what the body is, and what is said to a wrong request.

That is `{"error": "..."}`: 400 for what cannot be read or cannot work, 404 for what is not there, 409 for what cannot
be as things are.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import JSONResponse, Response

from sluice.errors import ConfigError, SluiceError

from .cluster_server import UnknownResourceError

if TYPE_CHECKING:
    from starlette.requests import Request

_LARGEST_BODY = 64 * 1024


def guarded(
    answer: "Callable[[Request], Awaitable[object]]", refused: "Callable[[Request], Response | None]"
) -> "Callable[[Request], Awaitable[Response]]":
    """Answers a request with what `answer` returns as JSON, or with why there is none; `refused` who may not ask."""

    async def respond(request: "Request") -> Response:
        if (refusal := refused(request)) is not None:
            return refusal
        try:
            return Response(msgspec.json.encode(await answer(request)), media_type="application/json")
        except UnknownResourceError as error:
            return _problem(error, 404)
        except (ConfigError, ValueError) as error:  # msgspec's among them
            return _problem(error, 400)
        except RecursionError:
            return _problem(ValueError("the body is nested too deeply"), 400)
        except SluiceError as error:  # a port that is in use, say
            return _problem(error, 409)

    return respond


async def body_of(request: "Request") -> bytes:
    """All of it. Raises ValueError where that is too much."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_BODY:
            raise ValueError(f"the body must have at most {_LARGEST_BODY} bytes")
    return body


def _problem(error: Exception, status: int) -> Response:
    return JSONResponse({"error": str(error)}, status_code=status)
