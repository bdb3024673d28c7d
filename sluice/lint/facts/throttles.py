"""Throttle times in responses, and whether the client waits until they are over (KIP-219).

The measure is that of the audit (`sluice.audit.judge.observer.throttles`): only API versions whose clients enforce
throttles, and only requests that were certainly sent after the response could be read. A broker that mutes the
connection, as Kafka does, does not read early requests, so only journals of a proxy, or of a fault that adds throttle
times, show them.
"""

from typing import NamedTuple

from sluice.journal_events import ConnectionClosed, Request
from sluice.protocol.apis import API_KEYS

from .domain import EVERY_REQUEST, Domain, Handlers
from .measures.examples import Examples

_NS_PER_MS = 1_000_000
# As in the audit (kip13.py): both clocks are truncated to milliseconds, and the client's machine may be busy.
_EARLY_NS = 2 * _NS_PER_MS
# Its slack, and the longest round trip that it assumes; it measures the round trip.
_SLACK_NS = (25 + 100) * _NS_PER_MS
_MOST_CONNECTIONS = 4096
_LEAST_NS = 10_000_000_000  # Kafka measures quotas over about as long (quota.window.num, quota.window.size.seconds)
_APIS = {api.name: api for api in API_KEYS.values()}


class _Throttled:
    """A connection with a throttle time; requests received between `from_ns` and `until_ns` are too early.

    read_ns: when the client has certainly read the response
    """

    __slots__ = ("from_ns", "is_ignored", "read_ns", "until_ns")

    def __init__(self, read_ns: int, until_ns: int) -> None:
        self.from_ns = self.read_ns = read_ns
        self.until_ns = until_ns
        self.is_ignored = False


class Throttled(NamedTuple):
    """How long a connection was throttled, from the first response with a throttle time to the last one."""

    throttled_ns: int
    lasted_ns: int


class _Span:
    """The throttle times of a connection, up to `until_ns`; those of requests in flight overlap."""

    __slots__ = ("first_ns", "total_ns", "until_ns")

    def __init__(self, at_ns: int) -> None:
        self.first_ns = self.until_ns = at_ns
        self.total_ns = 0


class Throttles(Domain):
    """The throttle times of a client.

    responses: responses with a throttle time that the client itself has to wait for
    most: the connection that was throttled for the largest share of 10 s or more
    early, ignored: requests that were too early, and the responses with a throttle time before them
    """

    def __init__(self) -> None:
        self.responses = self.ignored = self.early = 0
        self.most: Throttled | None = None
        self.examples, self.early_examples = Examples(), Examples()
        self._throttled: dict[int, _Throttled] = {}
        self._spans: dict[int, _Span] = {}

    def handlers(self) -> Handlers:
        return {EVERY_REQUEST: self._request, "connection-closed": self._closed}

    def _closed(self, event: ConnectionClosed) -> None:
        self._throttled.pop(event.connection, None)
        self._spans.pop(event.connection, None)

    def _request(self, event: Request) -> None:
        throttled = self._throttled
        if throttled and (found := throttled.get(event.connection)) is not None:
            self._follow(found, event)
        if event.throttle_time_ms:
            self._throttle(event)

    def _follow(self, throttled: _Throttled, event: Request) -> None:
        received_ns = event.received_ns
        if received_ns >= throttled.until_ns - _EARLY_NS:
            del self._throttled[event.connection]
        elif received_ns <= throttled.read_ns:
            # The broker did not read the connection before the response to this one.
            throttled.from_ns = max(throttled.from_ns, event.at_ns + _SLACK_NS)
        elif received_ns > throttled.from_ns:
            self.early += 1
            self.ignored += not throttled.is_ignored
            throttled.is_ignored = True
            self.early_examples.note(event)

    def _throttle(self, event: Request) -> None:
        self._add_span(event)
        self.examples.note(event)
        api, sent_ns = _APIS.get(event.api), event.written_ns
        if api is None or sent_ns is None or not api.client_throttles(event.version):
            return
        self.responses += 1
        until_ns = sent_ns + event.throttle_time_ms * _NS_PER_MS
        before = self._throttled.get(event.connection)
        if before is not None:
            before.until_ns = max(before.until_ns, until_ns)
            before.is_ignored = False
            return
        if len(self._throttled) >= _MOST_CONNECTIONS:
            del self._throttled[next(iter(self._throttled))]
        self._throttled[event.connection] = _Throttled(sent_ns + _SLACK_NS, until_ns)

    def _add_span(self, event: Request) -> None:
        at_ns = event.at_ns
        span = self._spans.get(event.connection)
        if span is None:
            if len(self._spans) >= _MOST_CONNECTIONS:
                del self._spans[next(iter(self._spans))]
            span = self._spans[event.connection] = _Span(at_ns)
        found = Throttled(span.total_ns - max(span.until_ns - at_ns, 0), at_ns - span.first_ns)
        most = self.most
        if found.lasted_ns >= _LEAST_NS and (
            most is None or found.throttled_ns * most.lasted_ns >= most.throttled_ns * found.lasted_ns
        ):
            self.most = found
        until_ns = at_ns + event.throttle_time_ms * _NS_PER_MS
        span.total_ns += max(until_ns - max(span.until_ns, at_ns), 0)
        span.until_ns = max(span.until_ns, until_ns)
