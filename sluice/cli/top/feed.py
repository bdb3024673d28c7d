"""A reader of `/api/v1/stream`, the messages of the web page."""

from collections.abc import Iterator

import msgspec

from sluice.cli.admin_client import AdminClient
from sluice.errors import SluiceError
from sluice.web.message import Message

_MOST_CLIENTS = 100
_DATA = b"data: "


class Feed:
    """The stream of one view. A wrong address raises ConfigError."""

    def __init__(self, admin: str, token: str | None, search: str, sort: str) -> None:
        self._admin = AdminClient(admin, token)
        self._query = {"search": search, "sort": sort, "size": _MOST_CLIENTS}

    def messages(self) -> Iterator[Message | None]:
        """Yield messages, and None for each heartbeat. Raises SluiceError or ConfigError."""
        with self._admin.open("/api/v1/stream", self._query) as answer:  # heartbeats arrive twice a second
            for line in answer:
                if line.startswith(_DATA):
                    yield msgspec.json.decode(line[len(_DATA) :], type=Message)
                elif line.strip():
                    yield None
        raise SluiceError(f"{self._admin.address}: the broker has stopped")
