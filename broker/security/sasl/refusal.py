"""A failed authentication, whose response and end of the connection are delayed (KIP-306)."""

from functools import partial

from sluice.broker.requests.context import LastResponse, RequestContext, Wait
from sluice.broker.requests.delayed_request import DelayedRequest
from sluice.broker.requests.session import Authentication
from sluice.protocol.message import Message
from sluice.purgatory.scheduler import Scheduler


class _Refusal(DelayedRequest):
    __slots__ = ("_response",)

    def __init__(self, ctx: RequestContext, delay_ms: int, response: Message | None) -> None:
        super().__init__(ctx, delay_ms)
        self._response = response

    def _respond(self) -> LastResponse:
        return LastResponse(self._response)


def refuse(
    ctx: RequestContext, sasl: Authentication, scheduler: Scheduler, response: Message | None, reason: str
) -> Wait:
    """Log a failed authentication; send the response, if any, and close the connection later."""
    refusal = _Refusal(ctx, sasl.failed(reason), response)
    return Wait(refusal.force_complete, partial(scheduler.delay, refusal))
