"""Encoded responses of a broker to ApiVersions and Metadata. All clients of a topic send the same requests.

A response follows from the body of the request, the listener, and the state of the cluster, whose changes are counted:
for ApiVersions those of the features; for Metadata those of topics, partitions, leaders, replicas, ISRs, brokers, the
reach of the controller, and which brokers see older metadata (`ClusterState.metadata_generation`). No response is kept

- of a broker that sees older metadata: it is isolated, or has a `MetadataImage`
- if there is an authorizer, a request quota (KIP-124), or a fault rule for the API
"""

from sluice.broker.broker import Broker, Handle
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.route import Encode
from sluice.broker.requests.trace import RequestSubject
from sluice.protocol.apis import ApiKey
from sluice.protocol.codec.wire import Parts
from sluice.protocol.message import Message

from .route import Route

# Of the bodies of requests and responses together. A topic takes about 100 bytes, and each of its partitions 30.
_MOST_BYTES = 4 << 20
_API_VERSIONS = ApiKey.API_VERSIONS
# Larger requests name so many topics that other clients rarely send the same.
_MOST_REQUEST_BYTES = 16 << 10

# Route; name of the listener, and host by which the client knows it; body of the request.
_Key = tuple[Route, str, str, bytes]


class Encoded(Outcome):
    """A response that is encoded already, what its request is about, and the client software that it names.

    `generation` is that of the state of the cluster from which it was made.
    """

    __slots__ = ("client_software", "generation", "parts", "size", "subject")
    throttle_time_ms = 0  # not set here, by a quota

    def __init__(self, parts: Parts, subject: RequestSubject | None) -> None:
        self.parts = parts
        self.size = sum(map(len, parts))
        self.subject = subject
        self.client_software: tuple[str, str] | None = None
        self.generation = 0


def encoding_unless_kept(encode: Encode) -> Encode:
    """Return a function that also accepts responses that are encoded already."""

    def encode_unless_kept(response: object, parts: Parts) -> None:
        if isinstance(response, Encoded):
            parts += response.parts
        else:
            encode(response, parts)

    return encode_unless_kept


class ResponseCache:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._cluster = broker.cluster
        self._quotas = broker.throttler.quotas
        self._responses: dict[_Key, Encoded] = {}
        self._bytes = 0
        # The last request without a cached response; if it is suspended, another one takes its place.
        self._missing: tuple[RequestContext, _Key, int] | None = None

    def find(self, ctx: RequestContext, route: Route, view: memoryview, start: int, end: int) -> Encoded | None:
        """Return the response to an earlier, equal request. Without one, `handle` may keep the response to this one."""
        if end - start > _MOST_REQUEST_BYTES or route.has_faults or self._quotas.request is not None:
            self._missing = None
            return None
        cluster = self._cluster
        generation = cluster.features.epoch if route.api_key == _API_VERSIONS else cluster.metadata_generation
        session = ctx.session
        listener = session.connection.advertised
        key = route, listener.name, listener.host, bytes(view[start:end])
        found = self._responses.get(key)
        if found is None or found.generation != generation:
            self._missing = ctx, key, generation
            return None
        if session.trace is not None:
            session.trace.subject = found.subject
        if found.client_software is not None:
            session.set_client_software(*found.client_software)
        return found

    def _may_keep(self, route: Route) -> bool:
        broker = self._broker
        return not (
            route.has_faults
            or self._quotas.request is not None  # a quota for request time charges each request
            or broker.authorizer is not None
            or broker.is_isolated
            or broker.metadata.image is not None
        )

    def keeping(self, handle: Handle) -> Handle:
        """Return a handler that keeps the responses of `handle`."""

        def handle_and_keep(ctx: RequestContext, request: Message, broker: Broker) -> Message | Outcome:
            missing, self._missing = self._missing, None
            if missing is None or missing[0] is not ctx:
                return handle(ctx, request, broker)
            _, key, generation = missing
            software = ctx.session.client_software
            outcome = handle(ctx, request, broker)
            if not isinstance(outcome, Message) or ctx.error_code or not self._may_keep(key[0]):
                return outcome
            parts = ctx.encode(outcome)
            subject = None if ctx.session.trace is None else ctx.session.trace.subject
            encoded = Encoded(parts, subject)
            if ctx.session.client_software is not software:
                encoded.client_software = ctx.session.client_software
            if encoded.size <= _MOST_BYTES:
                encoded.parts = [b"".join(parts)]
                encoded.generation = generation
                self._add(key, encoded)
            return encoded

        return handle_and_keep

    def _add(self, key: _Key, encoded: Encoded) -> None:
        """Keep a response; it replaces an outdated one to an equal request."""
        size = len(key[-1]) + encoded.size
        before = self._responses.pop(key, None)
        if before is not None:
            self._bytes -= len(key[-1]) + before.size
        if self._bytes + size > _MOST_BYTES:
            self._responses.clear()
            self._bytes = 0
        if size <= _MOST_BYTES:
            self._responses[key] = encoded
            self._bytes += size
