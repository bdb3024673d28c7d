"""A request that waits in a purgatory until it can be answered, or its time is over."""

from abc import abstractmethod

from sluice.protocol.message import Message
from sluice.purgatory.operation import DelayedOperation

from .context import Outcome, RequestContext


class DelayedRequest(DelayedOperation):
    """A delayed operation that resumes its request when it completes, with the result of `respond`."""

    __slots__ = ("_ctx",)

    def __init__(self, ctx: RequestContext, delay_ms: float) -> None:
        super().__init__(delay_ms)
        self._ctx = ctx

    def on_complete(self) -> None:
        self._ctx.resume(self._respond)

    @abstractmethod
    def _respond(self) -> Message | Outcome:
        """Return the response, or park the request again. Not called if the client has left."""
