"""The start of a request header: API key, version, correlation id and client id, which all versions have."""

from struct import Struct

from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.route import NO_API
from sluice.broker.requests.session import FIXED_HEADER, header_of
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis.header import RequestHeader
from sluice.protocol.codec.compile import decode_prefix

_SHORTEST = Struct(f"{FIXED_HEADER}h")  # and the length of the client id


def read_header(ctx: RequestContext, view: memoryview, start: int, end: int) -> tuple[int, int]:
    """Return API key and version as one number, and the correlation id; keep the client id in the session.

    Raises RemoteProtocolError if the header is malformed.
    """
    ctx.route = NO_API
    if end - start < _SHORTEST.size:
        raise RemoteProtocolError(
            f"malformed request header; expected at least {_SHORTEST.size} bytes, got {end - start}"
        )
    api_and_version, correlation_id, id_bytes = _SHORTEST.unpack_from(view, start)
    if id_bytes > end - start - _SHORTEST.size:
        raise RemoteProtocolError(
            f"malformed request header: client id length {id_bytes} exceeds the request size {end - start}"
        )
    header = header_of(max(id_bytes, 0))
    session = ctx.session
    client_id = bytes(view[start + _SHORTEST.size : start + header.size])
    session.client_id = client_id.decode(errors="replace")  # as Java does
    session.identity = None
    session.header = header
    session.id_as_sent = header.unpack_from(view, start)[2]
    return api_and_version, correlation_id


def after_tagged_fields(view: memoryview, start: int, end: int) -> int:
    """Return the end of a header of version 2, which starts at `start`."""
    return decode_prefix(RequestHeader, 2)(view, start, end)[1]
