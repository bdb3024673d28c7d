"""Requests for the controller that wait while the broker cannot reach it.

Follows Kafka's ForwardingManagerImpl: after a minute the response is REQUEST_TIMED_OUT, regardless of the request's
timeout. In one process a request is forwarded by handling it.
"""

from collections.abc import Callable
from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.delayed_request import DelayedRequest
from sluice.protocol.error_response import fail
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .route import Route

# Kafka's timeout for the channel to the controller (BrokerServer).
FORWARDING_TIMEOUT_MS = 60_000
_CODE = ErrorCode.REQUEST_TIMED_OUT


class Forwarded(DelayedRequest):
    __slots__ = ("_broker", "_request", "_then")

    def __init__(self, ctx: RequestContext, request: Message, broker: Broker) -> None:
        super().__init__(ctx, FORWARDING_TIMEOUT_MS)
        self._request = request
        self._broker = broker
        self._then: Callable[[], Message | Outcome] = self._time_out

    def forward(self) -> None:
        route: Route = self._ctx.route  # type: ignore[assignment]  # the exchange sets it
        self._then = partial(route.handler, self._ctx, self._request, self._broker)
        self.force_complete()

    def _respond(self) -> Message | Outcome:
        return self._then()

    def _time_out(self) -> Message:
        self._ctx.error_code = _CODE
        return fail(self._ctx.route.api_key, self._ctx.version, self._request, _CODE)
