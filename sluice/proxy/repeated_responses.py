"""Responses that an upstream broker repeats byte for byte, to ApiVersions and Metadata: decoded and rewritten once.

The response to send follows from the received one, from the listener and the host by which the client knows the proxy,
and from the versions that the proxy serves (`clear`). Two kinds are not kept: those with an error, which is counted,
and those that name a broker which has no port at the proxy yet.
"""

from sluice.broker.exchange.response_cache import Encoded
from sluice.broker.exchange.route import Route
from sluice.config.broker_config import Endpoint
from sluice.protocol.apis import ApiKey

REPEATED = frozenset({ApiKey.API_VERSIONS, ApiKey.METADATA})
# Of received and rewritten responses together. Metadata of 100,000 partitions has 4 MB, and takes 0.3 s of CPU to read.
_MOST_BYTES = 16 << 20

# Route; name and host of the client's listener; received response.
Key = tuple[Route, str, str, bytes]


class RepeatedResponses:
    def __init__(self) -> None:
        self._responses: dict[Key, Encoded] = {}
        self._bytes = 0

    def key_of(self, route: Route, listener: Endpoint, body: memoryview) -> Key | None:
        """Return the key of a response, or None if it is not kept."""
        if route.api_key not in REPEATED or len(body) > _MOST_BYTES // 2:
            return None
        return route, listener.name, listener.host, bytes(body)

    def find(self, key: Key) -> Encoded | None:
        return self._responses.get(key)

    def keep(self, key: Key, response: Encoded) -> None:
        size = len(key[-1]) + response.size
        if self._bytes + size > _MOST_BYTES:
            self.clear()
        self._responses[key] = response
        self._bytes += size

    def clear(self) -> None:
        self._responses.clear()
        self._bytes = 0
