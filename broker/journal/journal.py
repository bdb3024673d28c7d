"""The journal: a ring of the newest `sluice.journal.events` events.

about.py extracts a request's subject, one clock is read when the response is ready, and one tuple goes into the ring.
It refers to neither record bytes nor messages, which bounds the ring's memory. Readers poll and convert tuples to
events (entries.py, reader.py).

Entries of one read share a list with the times of receipt and sending, because their responses are sent together. A
request starts when the previous response is ready.
"""

from collections.abc import Mapping, Sequence

from sluice.broker.metadata.topic import Topic
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.trace import NOT_YET, RequestAnnotations, RequestTrace
from sluice.clock import Clock
from sluice.protocol.apis import API_KEYS
from sluice.protocol.codec.compile import decode_prefix
from sluice.protocol.error_codes import codes_in

from .about import EMPTY_SUBJECT, Reader, reader_of
from .kept import KEPT_APIS, keep

_NANOS_PER_MS = 1_000_000
REQUEST = "request"
UNANSWERED = -1
# A larger response has records; only its first error is recorded.
_LARGEST_READ_BYTES = 256 * 1024
_FIRST_ENTRIES = 1024  # the ring doubles until it has its size
_HEADER_BYTES = 4  # the correlation id; the header of a flexible response is larger by its tagged fields


class Journal:
    empty_subject = EMPTY_SUBJECT

    def __init__(
        self, size: int, clock: Clock, topics_by_id: "Mapping[bytes, Topic]", *, hashes_records: bool = False
    ) -> None:
        self.size = size
        self._hashes_records = hashes_records
        self.written = 0  # entries so far, and the number of the next one
        self.topics_by_id = topics_by_id
        self._clock = clock
        # Fields of RequestEntry or OtherEntry; a plain tuple takes half the time to create.
        self._ring: list[tuple[object, ...]] = [()] * min(size, _FIRST_ENTRIES)
        self._reading = clock.reading
        self._answered = clock.reading()
        self._connections = 0
        self._began_ns = clock.wall_ms() * _NANOS_PER_MS - round(clock.monotonic_ms() * _NANOS_PER_MS)

    def reader_of(self, api_key: int) -> Reader:
        return reader_of(api_key, self.topics_by_id, hashes_records=self._hashes_records)

    # -- requests ------------------------------------------------------------------------------------------------------

    def answered(self, ctx: RequestContext, body: Sequence[bytes | memoryview], size: int) -> None:
        """Record a request whose response of `size` bytes (0: none) is about to be sent."""
        session = ctx.session
        trace = session.trace
        if trace is None or trace.subject is None:
            return
        subject, trace.subject = trace.subject, None
        connection = session.connection
        read_times = connection.read_times
        if read_times is None:
            read_times = connection.read_times = [connection.read_ms, connection.started_ms, NOT_YET]
        annotations = trace.annotations
        if ctx.error_code or annotations is not None:
            annotations = _completed(ctx, trace, body, size)
        before, number = self._answered, self.written
        now = self._answered = self._reading()
        entry = (
            REQUEST,
            now,
            session.identity or session.identify(),
            ctx.route,
            ctx.version,
            ctx.correlation_id,
            read_times,
            before,
            ctx.request_bytes,
            size,
            subject,
            annotations,
            keep(body) if body and ctx.route.api_key in KEPT_APIS else None,
        )
        try:
            self._ring[number % self.size] = entry
            self.written = number + 1
        except IndexError:
            self._append(entry)

    def parked(self, ctx: RequestContext) -> None:
        """Keep a parked request's times, because other requests may be received and answered first."""
        self._annotate(ctx)

    # -- connections ---------------------------------------------------------------------------------------------------

    def opened(self, ctx: RequestContext) -> None:
        self._connections += 1
        ctx.session.connection.number = self._connections
        self.add_client_event("connection-opened", ctx)

    def refused(self, ctx: RequestContext, reason: str, throttle_ms: int) -> None:
        self.add_client_event("connection-refused", ctx, reason=reason, throttle_time_ms=throttle_ms)

    def closed(self, ctx: RequestContext) -> None:
        """Record the end, and an unanswered request in flight."""
        connection = ctx.session.connection
        self.unanswered(ctx)
        self.add_client_event(
            "connection-closed", ctx, by_client=connection.ended_by_client, reason=connection.close_reason
        )

    def unanswered(self, ctx: RequestContext) -> None:
        """Record the request in flight, if any, whose response is never sent."""
        connection = ctx.session.connection
        trace = ctx.session.trace
        if trace is not None and trace.subject is not None:
            subject, trace.subject = trace.subject, None
            client, request = (
                ctx.session.identity or ctx.session.identify(),
                (ctx.route, ctx.version, ctx.correlation_id),
            )
            read_times, now = [connection.read_ms, connection.started_ms, NOT_YET], self._reading()
            rest = (ctx.request_bytes, UNANSWERED, subject, trace.annotations, None)
            self._append((REQUEST, now, client, *request, read_times, self._answered, *rest))

    # -- other events --------------------------------------------------------------------------------------------------

    def throttled(self, ctx: RequestContext, quota: str, throttle_ms: int, *, is_shadow: bool) -> None:
        """Record a throttle time; if `is_shadow`, the client is not throttled, and its response does not have it."""
        annotations = self._annotate(ctx)
        if annotations is None:
            return
        if not is_shadow:
            annotations.throttle_ms += throttle_ms
        kind = "shadow-throttle" if is_shadow else "throttle"
        self.add_client_event(kind, ctx, **_request(ctx), quota=quota, throttle_time_ms=throttle_ms)

    def fault(self, ctx: RequestContext, rule_id: str, action: str) -> None:
        """Record a hit of the request in flight or, without one, of the connection."""
        of_request: dict[str, object] = {"api": "", "version": -1, "correlation_id": -1}
        annotations = self._annotate(ctx)
        if annotations is not None:
            of_request = _request(ctx)
            annotations.rule_id = rule_id
        self.add_client_event("fault", ctx, **of_request, rule_id=rule_id, action=action)

    def add_broker_fault(self, broker: int, rule_id: str, action: str) -> None:
        no_client = {"connection": -1, "listener": "", "peer": "", "client_id": "", "software_name": ""}
        no_request = {"software_version": "", "principal": "", "api": "", "version": -1, "correlation_id": -1}
        self.add_cluster_event("fault", broker, **no_client, **no_request, rule_id=rule_id, action=action)

    def set_throttle_time(self, ctx: RequestContext, throttle_ms: int) -> None:
        annotations = self._annotate(ctx)
        if annotations is not None:
            annotations.throttle_ms = throttle_ms

    def add_client_event(self, kind: str, ctx: RequestContext, **fields: object) -> None:
        identity = ctx.session.identity or ctx.session.identify()
        self._append((kind, self._reading(), identity, identity.broker, fields))

    def add_cluster_event(self, kind: str, broker: int, **fields: object) -> None:
        self._append((kind, self._reading(), None, broker, fields))

    # -- reading -------------------------------------------------------------------------------------------------------

    @property
    def first(self) -> int:
        return max(0, self.written - self.size)

    def entry(self, number: int) -> tuple[object, ...]:
        assert self.first <= number < self.written
        return self._ring[number % self.size]

    def ns(self, at_ms: float) -> int:
        return self._began_ns + round(at_ms * _NANOS_PER_MS)

    def ms(self, reading: float) -> float:
        return self._clock.ms_of(reading)

    def _annotate(self, ctx: RequestContext) -> RequestAnnotations | None:
        """Return the annotations of the request in flight, with its times; None if it is not recorded."""
        trace = ctx.session.trace
        if trace is None or trace.subject is None:
            return None
        annotations = trace.annotations
        if annotations is None:
            annotations = trace.annotations = RequestAnnotations()
        if not annotations.begun_ms:
            connection = ctx.session.connection
            annotations.received_ms = connection.read_ms
            annotations.begun_ms = max(connection.started_ms, self._clock.ms_of(self._answered))
        return annotations

    def _append(self, entry: tuple[object, ...]) -> None:
        ring = self._ring
        if self.written == len(ring) < self.size:
            ring += [()] * min(len(ring), self.size - len(ring))
        ring[self.written % self.size] = entry
        self.written += 1


def _request(ctx: RequestContext) -> dict[str, object]:
    return {"api": ctx.route.api_name, "version": ctx.version, "correlation_id": ctx.correlation_id}


def _completed(
    ctx: RequestContext, trace: RequestTrace, body: Sequence[bytes | memoryview], size: int
) -> RequestAnnotations:
    annotations, trace.annotations = trace.annotations or RequestAnnotations(), None
    if ctx.error_code and size:
        annotations.error_codes = _error_codes(ctx, body, size)
    return annotations


def _error_codes(ctx: RequestContext, body: Sequence[bytes | memoryview], size: int) -> tuple[int, ...]:
    # Decoding responses with an error again costs less than recording the errors of all.
    if not _HEADER_BYTES < size <= _LARGEST_READ_BYTES:
        return (ctx.error_code,)
    view, route = memoryview(b"".join(body)), ctx.route
    response, _ = decode_prefix(API_KEYS[route.api_key].response, route.version)(view, 0, len(view))
    return tuple(dict.fromkeys(codes_in(response))) or (ctx.error_code,)
