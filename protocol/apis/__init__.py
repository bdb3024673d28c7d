"""Kafka's APIs, one module each, with request and response in all versions that ever existed.

`API_KEYS` is the registry of names, versions and header versions (Kafka's `ApiKeys`), built from `index`; a module is
imported when its messages are first used.

Each module's docstring lists the changes per version, except those in `index`: the flexible versions (KIP-482), and
those after which clients apply the throttle time (KIP-219).
"""

from functools import cache
from importlib import import_module

from sluice.protocol.message import Message, fields_of

from .index import VERSIONS, ApiKey

__all__ = ["API_KEYS", "Api", "ApiKey", "api_of"]


class Api:
    def __init__(self, key: int, constant: str) -> None:
        self.key = key
        self.name = constant.title().replace("_", "")
        self.module = constant.lower()
        self.versions = versions = VERSIONS[key]
        self.min_version = versions.min
        self.max_version = versions.max
        self.flexible_since = versions.flexible.first  # above all versions if none is flexible
        self.latest_unstable = versions.latest_unstable
        self._messages: tuple[type[Message], type[Message]] | None = None

    @property
    def request(self) -> type[Message]:
        return self._load()[0]

    @property
    def response(self) -> type[Message]:
        return self._load()[1]

    def request_header_version(self, version: int) -> int:
        return 2 if version >= self.flexible_since else 1

    def response_header_version(self, version: int) -> int:
        """Return 0 for ApiVersions (KIP-511), whose client does not know the broker's versions yet."""
        return 1 if version >= self.flexible_since and self.key != ApiKey.API_VERSIONS else 0

    def has_throttle_time(self, version: int) -> bool:
        return any(field.name == "throttle_time_ms" and version in field.versions for field in fields_of(self.response))

    def client_throttles(self, version: int) -> bool:
        """Return whether a client applies the throttle time itself (KIP-219)."""
        return version in self.versions.client_throttles

    def _load(self) -> tuple[type[Message], type[Message]]:
        if self._messages is None:
            module = import_module(f"{__name__}.{self.module}")
            self._messages = getattr(module, f"{self.name}Request"), getattr(module, f"{self.name}Response")
        return self._messages


API_KEYS: dict[int, Api] = {key: Api(key, constant) for constant, key in vars(ApiKey).items() if constant.isupper()}
_BY_MODULE = {api.module: api for api in API_KEYS.values()}


@cache
def api_of(cls: type[Message]) -> Api:
    """Return the API of a message: its module has the API's name."""
    return _BY_MODULE[cls.__module__.rpartition(".")[2]]
