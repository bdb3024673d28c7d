"""The registry: which APIs are served, in which versions. ApiVersions is made from it.

One module per API, the twin of the module of the same name in `sluice.protocol.apis`, with a header `API` and a
function `handle`. It is loaded with the first request of its API: knowing what is served costs no import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from sluice.broker.requests.served_api import ServedApi

from .index import INDEX

if TYPE_CHECKING:
    from sluice.broker.handlers.services import Handle


class Handler:
    """One API as it is served, and where its module is in `handlers`."""

    __slots__ = ("api", "api_key", "max_version", "min_version", "module")

    def __init__(self, api_key: int, module: str, api: ServedApi) -> None:
        self.api_key = api_key
        self.module = module
        self.api = api
        self.min_version = api.min_version
        self.max_version = api.max_version

    def load(self) -> "Handle":
        """The function that handles its requests.

        It takes what the decoder of its API gives; the type checker cannot see that both are of one API.
        """
        return cast("Handle", import_module(f"sluice.broker.handlers.{self.module}").handle)


HANDLERS = {key: Handler(key, module, api) for key, (module, api) in INDEX.items()}
# The APIs that a broker forwards to the controller.
FORWARDED = frozenset(key for key, (_, api) in INDEX.items() if api.forwarded)
