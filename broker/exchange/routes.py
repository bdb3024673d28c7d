"""The routes of a broker: one for each API and version that a request has used."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from struct import Struct

from sluice.broker.broker import Broker
from sluice.broker.requests.context import Outcome, RequestContext, Wait
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.message import Message

from .forwarding import Forwarded
from .registry import FORWARDED, HANDLERS, Handler
from .response_cache import ResponseCache, encoding_unless_kept
from .route import Route

_API_AND_VERSION = Struct(">hh")
_NOT_SERVED = (0, -1)  # version range of an unknown API
_OLDEST_API_VERSIONS = ApiKey.API_VERSIONS << 16


class Routes:
    def __init__(
        self, broker: Broker, handlers: Mapping[int, Handler] = HANDLERS, new_route: type[Route] = Route
    ) -> None:
        # API key and version as one number, as in a request -> route
        self.opened: dict[int, Route] = {}
        # Called with each new route, to add fault rules to its handler.
        self.on_opened: Callable[[Route], None] | None = None
        self.cache = ResponseCache(broker)
        self._broker = broker
        self.handlers = handlers
        self._new_route = new_route
        self._throttler = broker.throttler
        self._journal = broker.journal
        self._held_apis: Collection[int] = ()
        self._pending_forwards: list[Forwarded] = []

    def __iter__(self) -> Iterator[Route]:
        return iter(self.opened.values())

    def find(self, api_and_version: int) -> Route | None:
        """Return None if the version is not served."""
        return self.opened.get(api_and_version) or self._open(api_and_version)

    def for_unsupported(self, ctx: RequestContext, api_and_version: int) -> Route:
        """Return the route of the response to a version that is not served, and set what the context says of it.

        Only ApiVersions has a response for every client: version 0, with the supported versions. Raises
        RemoteProtocolError for other APIs.
        """
        api_key, version = _API_AND_VERSION.unpack(api_and_version.to_bytes(4, "big"))
        served = self._broker.served.get(api_key)
        if api_key != ApiKey.API_VERSIONS or not served:
            api = API_KEYS.get(api_key)
            name = f"{api.name} version {version}" if api else f"API key {api_key}, version {version}"
            expected = f"; expected {served[0]} to {served[1]}" if served else ""
            raise RemoteProtocolError(f"{name}: unsupported version{expected}")
        route = self.find(_OLDEST_API_VERSIONS)
        assert route is not None  # version 0 of ApiVersions is always served
        ctx.version = version
        if self._journal is not None and ctx.session.trace is not None:
            ctx.session.trace.subject = self._journal.empty_subject
        return route

    def hold_forwarded(self, hold: bool) -> None:
        """Park requests for the controller until they time out, or handle the parked ones."""
        api_keys = FORWARDED if hold else ()
        if api_keys == self._held_apis:
            return
        self._held_apis = api_keys
        for api_and_version, route in self.opened.items():
            if api_and_version >> 16 in FORWARDED:
                self._update_hold(route, api_and_version >> 16)
        pending, self._pending_forwards = self._pending_forwards, []
        for forwarded in pending:
            forwarded.forward()

    def _open(self, api_and_version: int) -> Route | None:
        api_key, version = _API_AND_VERSION.unpack(api_and_version.to_bytes(4, "big"))
        first, last = self._broker.served.get(api_key, _NOT_SERVED)
        if not first <= version <= last:
            return None
        handler = self.handlers[api_key]
        route = self._new_route(handler, version, self._throttler.charge_of(handler.api))
        if route.is_cached:
            route.set_handler(self.cache.keeping(route.handler))
            route.encode = encoding_unless_kept(route.encode)
        if self._journal is not None:
            route.about = self._journal.reader_of(api_key)
        if api_key in self._held_apis:
            self._update_hold(route, api_key)
        if self.on_opened is not None:
            self.on_opened(route)
        self.opened[api_and_version] = route
        return route

    def _update_hold(self, route: Route, api_key: int) -> None:
        route.set_handler(self._park_forwarded if api_key in self._held_apis else self.handlers[api_key].load())

    def _park_forwarded(self, ctx: RequestContext, request: Message, broker: Broker) -> Outcome:
        forwarded = Forwarded(ctx, request, broker)
        self._pending_forwards.append(forwarded)
        return Wait(forwarded.force_complete, partial(self._broker.scheduler.delay, forwarded))
