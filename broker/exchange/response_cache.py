"""Encoded responses of a broker to Metadata. All clients of a topic send the same requests.

A response follows from the body of the request, the listener, and the metadata. It is cached while

- no controller is in use (`Cluster.controller.if_made`): no broker has failed, so leaders and replicas do not change
- no topic or partition is created or deleted (`Cluster.metadata_generation`)
- there is no authorizer, no request quota (KIP-124), and no fault rule for the API
"""

from sluice.broker.broker import Broker
from sluice.broker.controller.cluster import Cluster
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.trace import RequestSubject
from sluice.protocol.codec.wire import Parts

from .route import Route

# Of the bodies of requests and responses together. A topic takes about 100 bytes, and each of its partitions 30.
_MOST_BYTES = 4 << 20
# Larger requests name so many topics that other clients rarely send the same.
MOST_REQUEST_BYTES = 16 << 10

# Route; name of the listener, and host by which the client knows it; body of the request.
Key = tuple[Route, str, str, bytes]
Cached = tuple[Parts, int, RequestSubject | None]


class ResponseCache:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._responses: dict[Key, Cached] = {}
        self._bytes = 0
        self._generation = 0  # of the metadata in the responses

    def key_of(self, ctx: RequestContext, route: Route, body: bytes) -> Key:
        listener = ctx.connection.advertised
        return route, listener.name, listener.host, body

    def find(self, key: Key) -> Cached | None:
        """Return the parts, size and subject of a response."""
        is_current = self._broker.cluster.metadata_generation == self._generation
        return self._responses.get(key) if is_current else None

    @property
    def is_open(self) -> bool:
        return Cluster.controller.if_made(self._broker.cluster) is None and self._broker.authorizer is None

    def add(self, key: Key, generation: int, cached: Cached) -> None:
        """Keep a response that was made of metadata of this generation."""
        size = len(key[-1]) + cached[1]
        if generation != self._generation or self._bytes + size > _MOST_BYTES:
            self._responses.clear()
            self._bytes = 0
            self._generation = generation
        if size <= _MOST_BYTES:
            self._responses[key] = cached
            self._bytes += size
