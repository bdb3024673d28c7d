"""The handler of every API in a proxy, which forwards the request."""

from collections.abc import Mapping
from functools import partial
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
from .upstream_use import CHECKED, UpstreamUse


class ForwardingHandler(Handler):
    __slots__ = ("use",)

    def __init__(self, api_key: int, api: ServedApi, use: UpstreamUse | None) -> None:
        super().__init__(api_key, "", api)
        self.use = use

    def load(self) -> Handle:
        return _forward if self.use is None or self.api_key not in CHECKED else partial(_forward_checked, self.use)


def _forward(ctx: RequestContext, request: Message, _: Broker) -> Outcome:
    if ctx.fault is not None and ctx.fault.fetch_error is not None and isinstance(request, FetchRequest):
        request = structs.replace(request, max_wait_ms=0)  # failed partitions are reported at once
    return cast(ForwardedContext, ctx).upstream.forward(request)


def _forward_checked(use: UpstreamUse, ctx: RequestContext, request: Message, broker: Broker) -> Message | Outcome:
    refusal = use.refusal_of(ctx, request, broker.metadata.topics_by_id)
    return _forward(ctx, request, broker) if refusal is None else refusal


def handlers_of(served: Mapping[int, tuple[int, int]], use: UpstreamUse | None) -> dict[int, Handler]:
    """Return the handler of each served API."""
    handlers: dict[int, Handler] = {}
    for key, (first, last) in served.items():
        api = HANDLERS[key].api if key in HANDLERS else ServedApi(API_KEYS[key].name, first, last)
        own = structs.replace(api, min_version=first, max_version=last, forwarded=False, cached=False)
        handlers[key] = ForwardingHandler(key, own, use)
    return handlers
