"""One API in one version, as plain data."""

from collections.abc import Callable

from sluice.protocol.codec.wire import Parts

# Encodes a response; the type is object, but a route's responses are always of its API.
Encode = Callable[[object, Parts], None]


class ApiRoute:
    """The API of a request; the exchange's `Route` adds the handler."""

    __slots__ = ("api_key", "api_name", "encode", "label", "version")

    def __init__(self, api_key: int, api_name: str, version: int, encode: Encode) -> None:
        self.api_key = api_key
        self.api_name = api_name
        self.label = f"{api_name} v{version}"
        self.version = version
        self.encode = encode


def _encode_nothing(response: object, parts: Parts) -> None:
    pass


NO_API = ApiRoute(-1, "", 0, _encode_nothing)  # while a header is decoded
SASL_TOKEN = ApiRoute(-1, "SASL token", 0, _encode_nothing)  # after SaslHandshake v0, tokens have no header
