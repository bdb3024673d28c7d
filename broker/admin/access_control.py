"""Access control of the admin port: a bearer token or, without one, requests from this machine only.

Any web page can make a browser on this machine send requests, so three more checks are made:

- without a token, `Host` must be a loopback name. Otherwise another site could resolve a name to this machine, which
  makes its pages same-origin (DNS rebinding);
- an `Origin` must be the port itself;
- a request that changes something must be JSON or have a header, which browsers do not send for other sites without a
  preflight request (operation.py).
"""

from hmac import compare_digest
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .operation import problem

# Served without a token: an orchestrator's probes have none.
OPEN = frozenset({"/", "/healthz"})
_PAGE = "/page/"


class AccessControl:
    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refused(Headers(scope=scope), scope["path"])
        await (refused or self._app)(scope, receive, send)

    def _refused(self, headers: Headers, path: str) -> Response | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._token and not _is_here(host):
            return problem(403, f"host {host}: not a loopback name; use localhost, or set sluice.admin.token")
        if origin is not None and _netloc(origin) != host.lower():
            return problem(403, f"origin {origin}: another site's page; expected the port's own origin, {host}")
        is_open = path in OPEN or path.startswith(_PAGE)
        if self._token and not is_open and not self._is_known(headers.get("authorization", "")):
            message = "authorization: missing or wrong; send the value of sluice.admin.token as a bearer token"
            return problem(401, message, headers={"www-authenticate": "Bearer"})
        return None

    def _is_known(self, given: str) -> bool:
        return compare_digest(given.encode(), f"Bearer {self._token}".encode())


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _is_here(host: str) -> bool:
    """Whether a Host header, which browsers always send, names this machine."""
    name = host.lower().rpartition(":")[0] if not host.endswith("]") and ":" in host else host.lower()
    if name in ("", "localhost"):
        return True
    try:
        return ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
