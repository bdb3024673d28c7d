"""Who may ask the admin port: whoever has the token and, where there is none, who asks from this machine itself.

A browser on this machine asks what any page tells it to, so that "from this machine" is not enough:

- a name that leads here by someone's DNS (rebinding) makes another site's page one of ours: without a token the port
  answers only to names that mean this machine. With one, no stranger's page has it;
- a browser says which site sends (`Origin`): only the port's own may;
- a form needs no leave to be sent anywhere: what changes something has to come as JSON, or with a header, which only
  pages of ours can send (operation.py).
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

# Asked without a token: an orchestrator's probe has none, and the answer tells nothing; nor do the files of the page,
# which asks for what it shows with the token.
OPEN = frozenset({"/", "/healthz"})
_PAGE = "/page/"


class Gate:
    """Stands before an application: lets in who may ask, and answers all others itself."""

    def __init__(self, app: "ASGIApp", token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """One request."""
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
    """Whether a Host header names this machine; browsers never leave it out."""
    name = host.lower().rpartition(":")[0] if not host.endswith("]") and ":" in host else host.lower()
    if name in ("", "localhost"):
        return True
    try:
        return ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
