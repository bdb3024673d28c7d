"""Responses that may wait for replicas or for the end of a transaction."""

from collections.abc import Callable
from typing import TypeVar

from sluice.protocol.message import Message

from .context import Outcome, RequestContext

T = TypeVar("T")


def respond_when_done(
    ctx: RequestContext,
    start: Callable[[Callable[[T], None]], None],
    respond: Callable[[T], Message | Outcome],
    *,
    survives_disconnect: bool = False,
) -> Message | Outcome:
    """Call `start(done)`, and respond with `respond(result)` after `done(result)`, now or later.

    If the client has left, `respond` is called only with `survives_disconnect`.
    """
    results: list[T] = []
    parked = False

    def done(result: T) -> None:
        if parked:
            ctx.resume(lambda: respond(result), survives_disconnect=survives_disconnect)
        else:
            results.append(result)

    start(done)
    if results:
        return respond(results[0])
    parked = True
    return ctx.park_until_resumed()
