"""Requests that may take long: answered from the cache, or decoded in slices, between which other requests run.

A request with the usual single element is decoded and handled at once. Between two slices the connection is parked. As
in Kafka, it is not read until the response is sent, and the request of a client that disconnects is processed to its
end.
"""

from collections.abc import Callable
from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.long_request import LongRequest
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis import API_KEYS
from sluice.protocol.codec.compile import decode_in_slices, decode_single
from sluice.protocol.codec.wire import Parts
from sluice.protocol.frame import SCRATCH_BYTES
from sluice.protocol.message import Message

from .response_cache import ResponseCache
from .route import Route

# Handles a decoded request, and returns the handler's outcome.
Handle = Callable[[RequestContext, Route, Message], Message | Outcome]


class LargeRequests:
    def __init__(
        self, broker: Broker, cache: ResponseCache, handle: Handle, send: Callable[[RequestContext, Parts, int], None]
    ) -> None:
        self._long_requests = broker.cluster.runtime.long_requests
        self._throttler = broker.throttler
        self._actions = broker.actions
        self._cache = cache
        self._handle = handle
        self._send = send

    def dispatch(self, ctx: RequestContext, route: Route, view: memoryview, start: int, end: int) -> None:
        cached = self._cache.find(ctx, route, view, start, end) if route.is_cached else None
        if cached is not None:
            self._send(ctx, cached.parts, cached.size)  # no quota charges it
            return
        if end - start <= route.unsliced_bytes:
            request, _ = route.decode(view, start, end)
            if route.selects_all is None or not route.selects_all(request, route.version):
                self._handle(ctx, route, request)
                return
        decode = decode_single(API_KEYS[route.api_key].request, route.version)
        usual = None if decode is None else decode(view, start, end)
        if usual is not None:
            self._handle(ctx, route, usual)
            return
        body = view[start:end]
        if len(body) <= SCRATCH_BYTES:  # the buffer may be overwritten between slices; a larger frame has its own
            body = memoryview(bytes(body))
        self._run(ctx, lambda: self._decode_and_handle(ctx, route, body))

    def run(self, ctx: RequestContext, work: Callable[[], None]) -> None:
        """Do the rest of a request's work, in slices if it is long. Raises its error if it ends within this call."""
        if ctx.long is None or ctx.long.is_running:
            work()
        else:
            self._run(ctx, work)

    def _run(self, ctx: RequestContext, work: Callable[[], None]) -> None:
        request = ctx.long = LongRequest(self._long_requests, ctx.request_bytes, work)
        self._run_slice(ctx, request)

    def _run_slice(self, ctx: RequestContext, request: LongRequest) -> None:
        """Run one slice; if the request is not finished, park the connection until the next one."""
        connection = ctx.session.connection
        if not self._long_requests.run_slice(request):
            connection.park(_nothing)
            connection.hold_frame()
            if self._throttler.quotas.request is not None:
                self._throttler.request_timer.pause(ctx)
            self._long_requests.run_later(request, partial(self._resume, ctx, request))
        elif connection.waiting:  # parked by its handler, or throttled
            connection.release_frame()
        else:
            ctx.long = None
            if request.suspended:
                connection.release_frame()
                connection.resume()

    def _resume(self, ctx: RequestContext, request: LongRequest) -> None:
        connection = ctx.session.connection
        if connection.closed and not connection.ended_by_client:
            self._long_requests.cancel(request)
            connection.release_frame()
            return
        if self._throttler.quotas.request is not None:
            self._throttler.request_timer.resume()
        connection.unpark()
        try:
            self._run_slice(ctx, request)
        except RemoteProtocolError as error:
            connection.close(str(error))
            connection.release_frame()
        except Exception:
            connection.fail()
            connection.release_frame()
        self._actions.complete()

    def _decode_and_handle(self, ctx: RequestContext, route: Route, body: memoryview) -> None:
        slices = self._long_requests.slices
        request, _ = decode_in_slices(API_KEYS[route.api_key].request, route.version, body, 0, len(body), slices)
        self._handle(ctx, route, request)


def _nothing() -> None:
    pass
