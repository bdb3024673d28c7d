"""Requests to the controller whose timeout is over before it processes them (QuorumController's deadlines).

Without anything to do, the timeout does not matter.
"""

from sluice.protocol.error_response import fail
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .context import RequestContext


def expired(ctx: RequestContext, request: Message) -> Message:
    """Return the response to a request with a timeout of 0 or less, which changes nothing."""
    ctx.error_code = ErrorCode.REQUEST_TIMED_OUT
    return fail(ctx.route.api_key, ctx.version, request, ErrorCode.REQUEST_TIMED_OUT)
