"""Requests that are too large to be decoded at once: they are decoded in slices, between which other requests run."""

from collections.abc import Callable

from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.long_request import LongRequests, RequestTimer
from sluice.broker.throttling.throttler import Throttler
from sluice.protocol.apis import API_KEYS
from sluice.protocol.codec.compile import decode_in_slices, decode_single
from sluice.protocol.frame import SCRATCH_BYTES
from sluice.protocol.message import Message

from .route import Route


class LargeRequests:
    def __init__(self, long_requests: LongRequests, throttler: Throttler) -> None:
        self._long_requests = long_requests
        self._throttler = throttler

    @property
    def timer(self) -> RequestTimer | None:
        """The timer of the request quota, if there is one."""
        return None if self._throttler.quotas.request is None else self._throttler.request_timer

    def run(self, ctx: RequestContext, work: Callable[[], None]) -> None:
        """Do a part of a request's work, in slices. Raises its error if it ends within this call."""
        self._long_requests.run(ctx, work, self.timer)

    def decode(self, ctx: RequestContext, route: Route, body: memoryview, handle: Callable[[Message], None]) -> None:
        """Decode a request, and call `handle` with it, in slices."""
        if len(body) <= SCRATCH_BYTES:  # the buffer may be overwritten between slices; a larger frame has its own
            body = memoryview(bytes(body))
        request_class, version = API_KEYS[route.api_key].request, route.version

        def decode_and_handle() -> None:
            long = ctx.long
            assert long is not None
            request, _ = decode_in_slices(request_class, version, body, 0, len(body), long.pause)
            handle(request)

        self.run(ctx, decode_and_handle)


def decode_usual(route: Route, view: memoryview, start: int, end: int) -> Message | None:
    """Decode a request at once if it has the usual single element, else return None."""
    decode = decode_single(API_KEYS[route.api_key].request, route.version)
    return None if decode is None else decode(view, start, end)
