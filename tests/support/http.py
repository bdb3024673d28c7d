"""One request to the admin port's ASGI application. Starlette's test client needs another library."""

import asyncio
from typing import Any

from starlette.applications import Starlette

OURS = {"x-sluice-request": "1"}  # proves that no page of another site sent the request
AS_JSON = {"content-type": "application/json"}


def call(
    app: Starlette, path: str, method: str = "GET", body: str = "", query: str = "", **headers: str
) -> tuple[int, dict[str, str], str]:
    """Return status, headers and body of the response. The headers of our commands are added; "" removes one."""
    sent_along = OURS | (AS_JSON if body else {}) | headers
    sent: list[dict[str, Any]] = []  # ASGI messages

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body.encode(), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(key.encode(), value.encode()) for key, value in sent_along.items() if value],
    }
    asyncio.run(app(scope, receive, send))
    start, *rest = sent
    answered = {key.decode(): value.decode() for key, value in start["headers"]}
    return start["status"], answered, b"".join(part.get("body", b"") for part in rest).decode()
