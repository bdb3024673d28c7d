"""An answer that may have to wait: for the replicas, or for a transaction that is still being completed."""

from collections.abc import Callable
from typing import TypeVar

from sluice.protocol.message import Message

from .context import Outcome, RequestContext

T = TypeVar("T")


def respond_when_done(
    ctx: RequestContext, start: Callable[[Callable[[T], None]], None], respond: Callable[[T], Message | Outcome]
) -> Message | Outcome:
    """Calls `start(done)`, and answers with `respond(result)` once `done(result)` was called: now, or later.

    Returns what a handler returns. A client that leaves in between changes nothing but that nobody is answered.
    """
    results: list[T] = []
    parked = False

    def done(result: T) -> None:
        if parked:
            ctx.responder.complete(ctx, lambda: respond(result))
        else:
            results.append(result)

    start(done)
    if results:
        return respond(results[0])
    parked = True
    return ctx.wait_for_answer()
