"""A reader of `/api/v1/stream`, the messages of the web page."""

from collections.abc import Iterator
from urllib.parse import urlencode
from urllib.request import Request

import msgspec

from sluice.cli.admin_client import admin_address, open_response, token_header
from sluice.errors import SluiceError
from sluice.web.message import Message

_MOST_CLIENTS = 100
_DATA = b"data: "


class Feed:
    """The stream of one view. A wrong address raises ConfigError."""

    def __init__(self, admin: str, token: str | None, search: str, sort: str) -> None:
        self._admin = admin_address(admin)
        query = urlencode({"search": search, "sort": sort, "size": _MOST_CLIENTS})
        self._request = Request(f"{self._admin}/api/v1/stream?{query}", headers=token_header(token))  # noqa: S310  (by admin_address)

    def messages(self) -> Iterator[Message | None]:
        """Yield messages, and None for each heartbeat. Raises SluiceError or ConfigError."""
        with open_response(self._request, self._admin) as answer:  # heartbeats arrive twice a second
            for line in answer:
                if line.startswith(_DATA):
                    yield msgspec.json.decode(line[len(_DATA) :], type=Message)
                elif line.strip():
                    yield None
        raise SluiceError(f"{self._admin}: the broker has stopped")
