"""The routes of a proxy. A request is sent on as it was received, and decoded only where something reads it."""

from struct import Struct

from sluice.broker.exchange.registry import Handler
from sluice.broker.exchange.response_cache import encoding_unless_kept
from sluice.broker.exchange.route import Route
from sluice.broker.requests.context import RequestContext
from sluice.broker.throttling.throttler import ChargeResponse
from sluice.protocol.addresses import rewriter_of
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.codec.compile import decode_prefix, encoder
from sluice.protocol.message import Message
from sluice.proxy.mutations import MUTATING

_HEADER = Struct(">ihhi")  # size, API key, version, correlation id
_SIZE = Struct(">i")
_NO_TAGGED_FIELDS = b"\0"
# Requests are not decoded in slices: few are decoded, and none larger than this unless a fault rule needs it.
_MOST_READ_BYTES = 1 << 20
_NEVER_LARGE = 2**31
_SENT = Message()
_NO_BYTES = memoryview(b"")
# APIs whose requests the proxy itself reads.
_READ = MUTATING | {
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.SHARE_FETCH,
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
}


class ForwardedRoute(Route):
    """A route that keeps the frame of the request that it has decoded last, until it is sent."""

    __slots__ = (
        "_decode_request",
        "_end",
        "_last",
        "_reads",
        "_unread",
        "_view",
        "decode_response",
        "rewrite_addresses",
    )
    _reads_all = False

    def __init__(self, handler: Handler, version: int, charge: ChargeResponse) -> None:
        super().__init__(handler, version, charge)
        api = API_KEYS[self.api_key]
        self.inline_bytes = _NEVER_LARGE
        self.encode = encoding_unless_kept(self.encode)
        self.decode_response = decode_prefix(api.response, version)
        self.rewrite_addresses = rewriter_of(self.api_key, version)
        self._decode_request = self.decode
        self.decode = self._receive
        self._reads: bool | None = None  # until the first request
        self._unread = self._last = api.request()  # in place of a request that nothing reads
        self._view = _NO_BYTES
        self._end = 0

    def frame_of(self, ctx: RequestContext, request: Message) -> bytes:
        """Return the frame to send for a request: as it was received, or encoded if fault rules may have changed it.

        A request that waits for a rule, or for an answer of the cluster, is sent when others have overwritten the read
        buffer.
        """
        if request is self._last:
            body = self._view[self._end - ctx.request_bytes : self._end]
            self._last, self._view = _SENT, _NO_BYTES  # do not keep a large request
            return b"".join((_SIZE.pack(len(body)), body))
        parts: list[bytes | memoryview] = [b"", ctx.session.id_as_sent]
        if self.flexible:
            parts.append(_NO_TAGGED_FIELDS)
        encoder(type(request), self.version)(request, parts)
        size = sum(map(len, parts)) + _HEADER.size - _SIZE.size
        parts[0] = _HEADER.pack(size, self.api_key, self.version, ctx.correlation_id)
        return b"".join(parts)

    def has_read(self, request: Message) -> bool:
        """Return whether a request was decoded, which large ones are not."""
        return request is not self._unread

    def _receive(self, view: memoryview, start: int, end: int) -> tuple[Message, int]:
        request = self._unread
        if self._reads is None:
            self._reads = self.api_key in _READ or hasattr(self, "about")  # for the proxy, or for the journal
        reads = self._reads and (end - start <= _MOST_READ_BYTES or self.api_key == ApiKey.PRODUCE)
        if reads or self.has_faults or self._reads_all:
            request, _ = self._decode_request(view, start, end)
        may_wait = self.has_faults or self.api_key in MUTATING
        self._last, self._view, self._end = self._unread if may_wait else request, view, end
        return request, end


class DecodedRoute(ForwardedRoute):
    """A route that decodes all requests."""

    __slots__ = ()
    _reads_all = True
