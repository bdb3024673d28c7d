"""The served APIs and their versions, which ApiVersions reports.

Each API has a handler module, named like its module in `sluice.protocol.apis` and imported with the first request.
"""

from importlib import import_module
from typing import cast

from sluice.broker.broker import Handle
from sluice.broker.requests.served_api import ServedApi

from .index import INDEX


class Handler:
    def __init__(self, api_key: int, module: str, api: ServedApi) -> None:
        self.api_key = api_key
        self.module = module
        self.api = api
        self.min_version = api.min_version
        self.max_version = api.max_version

    def load(self) -> Handle:
        # The type checker cannot verify that the handler accepts the request class of its API.
        return cast(Handle, import_module(f"sluice.broker.handlers.{self.module}").handle)


HANDLERS = {key: Handler(key, module, api) for key, (module, api) in INDEX.items()}
# APIs that a broker forwards to the controller.
FORWARDED = frozenset(key for key, (_, api) in INDEX.items() if api.forwarded)
