"""Access control of the admin port: a bearer token or, without a token, requests from this machine only.

A browser on this machine sends what any page tells it to send, so three more checks are made:

- DNS rebinding: a name that another site's DNS resolves to this machine would make its pages same-origin. Without a
  token the port accepts only `Host` headers that mean this machine. With one, no other site's page knows the token;
- the browser names the site that sends (`Origin`): only the port's own is accepted;
- a form needs no permission: a request that changes something must be JSON or have a header that only the port's own
  pages can send (operation.py).
"""

from hmac import compare_digest
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from .operation import problem

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

# Served without a token: an orchestrator's probe has none, and the response reveals nothing. The same holds for the
# files of the page, whose own requests have the token.
OPEN = frozenset({"/", "/healthz"})
_PAGE = "/page/"


class AccessControl:
    """Middleware that passes authorized requests to an application, and rejects all others."""

    def __init__(self, app: "ASGIApp", token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Handle one request."""
        refused = self._refused(Headers(scope=scope), scope["path"])
        await (refused or self._app)(scope, receive, send)

    def _refused(self, headers: Headers, path: str) -> "Response | None":
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._token and not _is_here(host):
            words = (
                f"host {host}: without sluice.admin.token this port answers to loopback names alone, such as localhost"
            )
            return problem(403, words)
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return problem(403, f"origin {origin}: pages of other sites may not ask this port")
        is_open = path in OPEN or path.startswith(_PAGE)
        if self._token and not is_open and not self._is_known(headers.get("authorization", "")):
            message = "this port asks for the bearer token that sluice.admin.token names"
            return problem(401, message, headers={"www-authenticate": "Bearer"})
        return None

    def _is_known(self, given: str) -> bool:
        return compare_digest(given.encode(), f"Bearer {self._token}".encode())


def _is_here(host: str) -> bool:
    """Whether a Host header, which browsers always send, names this machine."""
    name = host.lower().rpartition(":")[0] if not host.endswith("]") and ":" in host else host.lower()
    if name in ("", "localhost"):
        return True
    try:
        return ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
