"""The handlers of a proxy. All forward the request, except those of SASL authentication that ends at the proxy.

Unless SASL passes through, SaslHandshake and SaslAuthenticate have a broker's handlers: an authentication would change
the user of a connection that the proxy has authenticated. On a listener with SASL, ApiVersions is forwarded only after
the client's authentication.
"""

from collections.abc import Mapping
from functools import partial
from typing import cast

from msgspec import structs

from sluice.broker.broker import Broker, Handle
from sluice.broker.exchange.registry import HANDLERS, Handler
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import ServedApi
from sluice.broker.requests.session import ANONYMOUS
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.fetch import FetchRequest
from sluice.protocol.message import Message

from .upstream_connection import ForwardedContext
from .upstream_use import CHECKED, UpstreamUse

SASL_APIS = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})


class ForwardingHandler(Handler):
    __slots__ = ("use",)

    def __init__(self, api_key: int, api: ServedApi, use: UpstreamUse | None) -> None:
        super().__init__(api_key, "", api)
        self.use = use

    def load(self) -> Handle:
        if self.api_key == ApiKey.API_VERSIONS:
            return _forward_authenticated
        return _forward if self.use is None or self.api_key not in CHECKED else partial(_forward_checked, self.use)


def _forward(ctx: RequestContext, request: Message, _: Broker) -> Outcome:
    if ctx.fault is not None and ctx.fault.fetch_error is not None and isinstance(request, FetchRequest):
        request = structs.replace(request, max_wait_ms=0)  # failed partitions are reported at once
    return cast(ForwardedContext, ctx).upstream.forward(request)


def _forward_checked(use: UpstreamUse, ctx: RequestContext, request: Message, broker: Broker) -> Message | Outcome:
    refusal = use.refusal_of(ctx, request, broker.metadata.topics_by_id)
    return _forward(ctx, request, broker) if refusal is None else refusal


def _forward_authenticated(ctx: RequestContext, request: Message, broker: Broker) -> Message | Outcome:
    session = ctx.session
    if session.authentication is not None and session.user == ANONYMOUS:
        return HANDLERS[ApiKey.API_VERSIONS].load()(ctx, request, broker)
    return _forward(ctx, request, broker)


def served_with_own_sasl(versions: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    own = {key: HANDLERS[key] for key in SASL_APIS}
    return {**versions, **{key: (handler.min_version, handler.max_version) for key, handler in own.items()}}


def handlers_of(
    served: Mapping[int, tuple[int, int]], use: UpstreamUse | None, *, passes_sasl: bool
) -> dict[int, Handler]:
    """Return the handler of each served API."""
    handlers: dict[int, Handler] = {}
    for key, (first, last) in served.items():
        if key in SASL_APIS and not passes_sasl:
            handlers[key] = HANDLERS[key]
            continue
        api = HANDLERS[key].api if key in HANDLERS else ServedApi(API_KEYS[key].name, first, last)
        own = structs.replace(api, min_version=first, max_version=last, forwarded=False, cached=False)
        handlers[key] = ForwardingHandler(key, own, use)
    return handlers
