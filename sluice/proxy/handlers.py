"""The handler of every API in a proxy, which forwards the request."""

from collections.abc import Mapping
from typing import cast

from msgspec import structs

from sluice.broker.broker import Broker, Handle
from sluice.broker.exchange.registry import HANDLERS, Handler
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import ServedApi
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.fetch import FetchRequest
from sluice.protocol.message import Message

from .upstream_connection import ForwardedContext


class ForwardingHandler(Handler):
    __slots__ = ()

    def load(self) -> Handle:
        return _forward


def _forward(ctx: RequestContext, request: Message, _: Broker) -> Outcome:
    if ctx.fault is not None and ctx.fault.fetch_error is not None and isinstance(request, FetchRequest):
        request = structs.replace(request, max_wait_ms=0)  # failed partitions are reported at once
    return cast(ForwardedContext, ctx).upstream.forward(request)


def handlers_of(served: Mapping[int, tuple[int, int]]) -> dict[int, Handler]:
    """Return the handler of each served API."""
    handlers: dict[int, Handler] = {}
    for key, (first, last) in served.items():
        api = HANDLERS[key].api if key in HANDLERS else ServedApi(API_KEYS[key].name, first, last)
        own = structs.replace(api, min_version=first, max_version=last, forwarded=False, cached=False)
        handlers[key] = ForwardingHandler(key, "", own)
    return handlers
