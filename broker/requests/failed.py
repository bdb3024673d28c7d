"""The response to a request that fails as a whole."""

from sluice.protocol.error_response import fail
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .context import RequestContext


def failed(ctx: RequestContext, request: Message, code: ErrorCode, message: str | None = None) -> Message:
    """Return the response in which everything failed; `message` replaces that of the code."""
    ctx.error_code = code
    return fail(ctx.route.api_key, ctx.version, request, code, message)


def expired(ctx: RequestContext, request: Message) -> Message:
    """Return the response to a request to the controller with a timeout of 0 or less (QuorumController's deadlines).

    Without anything to do, the timeout does not matter.
    """
    return failed(ctx, request, ErrorCode.REQUEST_TIMED_OUT)
