"""A request as it is sent: its size, header and body."""

from struct import Struct

from sluice.protocol.apis import api_of
from sluice.protocol.apis.header import RequestHeader

from .codec.compile import encoder
from .message import Message

_pack_size = Struct(">i").pack


def frame_parts(
    request: Message, version: int, *, client_id: str | None, correlation_id: int
) -> tuple[list[bytes | memoryview], int]:
    """Return a request as bytes, large fields by reference, and their number without the size prefix."""
    api = api_of(type(request))
    header = RequestHeader(
        request_api_key=api.key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    parts: list[bytes | memoryview] = [b""]
    encoder(RequestHeader, api.request_header_version(version))(header, parts)
    encoder(type(request), version)(request, parts)
    size = sum(map(len, parts))
    parts[0] = _pack_size(size)
    return parts, size
