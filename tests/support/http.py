"""One request to the admin port's ASGI application. Starlette's test client needs another library."""

import asyncio
import json
from typing import Any

from starlette.applications import Starlette

from sluice.broker.admin.application import application
from tests.support.virtual_broker import VirtualBroker

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


class Admin:
    """The admin port of a broker in virtual time."""

    def __init__(self, *overrides: str, broker: VirtualBroker | None = None) -> None:
        self.broker = broker or VirtualBroker(*overrides)
        self._application = application(self.broker.cluster_server)

    def send(
        self, path: str, method: str = "GET", body: object = None, query: str = "", token: str = ""
    ) -> tuple[int, Any]:
        """Return status and JSON of a response; `body` is sent as JSON, or unchanged if it is text."""
        text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
        authorization = f"Bearer {token}" if token else ""
        status, _, response = call(self._application, path, method, text, query, authorization=authorization)
        self.broker.settle()
        return status, json.loads(response)
