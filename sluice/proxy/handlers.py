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
from sluice.protocol.apis.share_fetch import ShareFetchRequest
from sluice.protocol.message import Message

from .mutations import MUTATING, Mutations, look_up_and_charge
from .upstream.connection import ForwardedContext, UpstreamConnection
from .upstream.forwarded_route import ForwardedRoute
from .upstream.use import CHECKED, UpstreamUse

SASL_APIS = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})


class ForwardingHandler(Handler):
    __slots__ = ("use",)

    def __init__(self, api_key: int, api: ServedApi, use: UpstreamUse | None) -> None:
        super().__init__(api_key, "", api)
        self.use = use

    def load(self) -> Handle:
        if self.api_key == ApiKey.API_VERSIONS:
            return _forward_authenticated
        forward = _FORWARD.get(self.api_key, _forward)
        return forward if self.use is None or self.api_key not in CHECKED else partial(_check, self.use, forward)


def _forward(ctx: RequestContext, request: Message, _: Broker) -> Outcome:
    upstream: UpstreamConnection = ctx.upstream  # type: ignore[attr-defined]  # cheaper than a cast
    return upstream.forward(request)


def _forward_fetch(ctx: RequestContext, request: Message, broker: Broker) -> Outcome:
    """Forward a Fetch, limited to the bytes that its quota grants at once, as in Kafka, unless it is not read."""
    assert isinstance(request, FetchRequest | ShareFetchRequest)
    throttler = broker.throttler
    if throttler.quotas.fetch.quotas_enabled and not cast(ForwardedContext, ctx).is_exempt:
        most = throttler.largest_fetch(ctx.session.user, ctx.session.client_id)
        if most < request.max_bytes and cast(ForwardedRoute, ctx.route).has_read(request):
            request = structs.replace(request, max_bytes=int(most))
    if isinstance(request, FetchRequest) and ctx.fault is not None and ctx.fault.fetch_error is not None:
        request = structs.replace(request, max_wait_ms=0)  # failed partitions are reported at once
    return _forward(ctx, request, broker)


def _forward_mutation(ctx: RequestContext, request: Message, broker: Broker) -> Message | Outcome:
    quota = broker.throttler.controller.mutation
    forwarded = cast(ForwardedContext, ctx)
    forwarded.mutations = None
    if quota is None or not quota.quotas_enabled or forwarded.is_exempt:
        return _forward(ctx, request, broker)
    mutations = forwarded.mutations = Mutations(ctx, broker.throttler)
    topics_by_id = broker.metadata.topics_by_id

    def forward(rest: Message | None) -> Message | Outcome:
        return mutations.finish(None, topics_by_id) if rest is None else forwarded.upstream.forward(rest)

    return look_up_and_charge(mutations, request, topics_by_id, forwarded.upstream.look_up, forward)


def _check(
    use: UpstreamUse, forward: Handle, ctx: RequestContext, request: Message, broker: Broker
) -> Message | Outcome:
    refusal = use.refusal_of(ctx, request, broker.metadata.topics_by_id)
    return forward(ctx, request, broker) if refusal is None else refusal


def _forward_authenticated(ctx: RequestContext, request: Message, broker: Broker) -> Message | Outcome:
    session = ctx.session
    if session.authentication is not None and session.user == ANONYMOUS:
        return HANDLERS[ApiKey.API_VERSIONS].load()(ctx, request, broker)
    return _forward(ctx, request, broker)


_FORWARD: Mapping[int, Handle] = {
    ApiKey.FETCH: _forward_fetch,
    ApiKey.SHARE_FETCH: _forward_fetch,
    **dict.fromkeys(MUTATING, _forward_mutation),
}


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
