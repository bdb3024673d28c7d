"""The journal: a ring of what happened, of which the newest `sluice.journal.events` are kept.

Theory of operation. While a request is handled, as little as possible is done for it: what it is about is taken from
it (about.py), one clock is read as its answer is ready, and one tuple of what is known by then goes into the ring. It
refers to nothing large, so that the ring's memory is bounded: record bytes and messages are not kept. Only who reads
the journal has events made of these tuples (entries.py), and nobody is told of a new one: readers look (reader.py).
That is also why a reader cannot slow the broker down: the one that is too slow finds the entries overwritten that it
had still to read, and is told how many.

Requests of one read are handled one after the other, and their answers leave together. So when they came and left is
one list that their entries share, and which is filled in as that happens; and each was begun when the one before was
answered.
"""

from collections.abc import Mapping, Sequence

from sluice.broker.metadata.topic import Topic
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.trace import NOT_YET, RequestAnnotations
from sluice.clock import Clock
from sluice.protocol.apis import API_KEYS
from sluice.protocol.codec.compile import decode_prefix

from .about import EMPTY_SUBJECT, Reader, reader_of

_NANOS_PER_MS = 1_000_000
REQUEST = "request"
UNANSWERED = -1  # in place of an answer's size
# Of a larger response, which is one with records, only the first error is in the journal.
_LARGEST_READ_BYTES = 256 * 1024
_HEADER_BYTES = 4  # the correlation id; the header of a flexible response is larger by its tagged fields


class Journal:
    """What happened to the brokers of a cluster."""

    empty_subject = EMPTY_SUBJECT  # for what cannot be read

    def __init__(self, size: int, clock: Clock, topics_by_id: "Mapping[bytes, Topic]") -> None:
        """Keeps the newest `size` entries."""
        self.size = size
        self.written = 0  # entries so far: the next one's number, from 0 on
        self.topics_by_id = topics_by_id
        self._clock = clock
        # The fields of a RequestEntry or an OtherEntry (entries.py): a plain tuple takes half the time to make.
        self._ring: list[tuple[object, ...]] = [()] * size
        self._reading = clock.reading
        self._answered = clock.reading()  # when the last answer was ready
        self._connections = 0
        self._began_ns = clock.wall_ms() * _NANOS_PER_MS - round(clock.monotonic_ms() * _NANOS_PER_MS)

    def reader_of(self, api_key: int) -> Reader:
        """What takes from the requests of an API what they are about."""
        return reader_of(api_key, self.topics_by_id)

    # -- requests ------------------------------------------------------------------------------------------------------

    def answered(self, ctx: RequestContext, body: Sequence[bytes | memoryview], size: int) -> None:
        """A request's answer is ready, of `size` bytes, 0 for none, and leaves next."""
        about = ctx.subject
        if about is None:
            return
        ctx.subject = None
        connection = ctx.connection
        turn = connection.read_times
        if turn is None:
            turn = connection.read_times = [connection.read_ms, ctx.started_ms, NOT_YET]
        annotations = ctx.annotations
        if ctx.error_code or annotations is not None:
            annotations = _completed(ctx, body, size)
        before, number = self._answered, self.written
        now = self._answered = self._reading()
        self._ring[number % self.size] = (
            REQUEST,
            now,
            ctx.session.identity or ctx.session.identify(),
            ctx.route,
            ctx.version,
            ctx.correlation_id,
            turn,
            before,
            ctx.request_bytes,
            size,
            about,
            annotations,
        )
        self.written = number + 1

    def parked(self, ctx: RequestContext) -> None:
        """The request that was begun last waits: more may come and others be answered before it is."""
        annotations = _annotations_of(ctx)
        if not annotations.begun_ms:
            annotations.received_ms = ctx.connection.read_ms
            annotations.begun_ms = max(ctx.started_ms, self._clock.ms_of(self._answered))

    # -- connections ---------------------------------------------------------------------------------------------------

    def opened(self, ctx: RequestContext) -> None:
        """A client connected."""
        self._connections += 1
        ctx.connection.number = self._connections
        self.add_client_event("connection-opened", ctx)

    def refused(self, ctx: RequestContext, reason: str, throttle_ms: int) -> None:
        """A limit keeps a connection out, which will be closed."""
        self.add_client_event("connection-refused", ctx, reason=reason, throttle_time_ms=throttle_ms)

    def closed(self, ctx: RequestContext) -> None:
        """A connection ended; the request in flight, if there is one, has no answer."""
        connection = ctx.connection
        about, ctx.subject = ctx.subject, None
        if about is not None:
            who, what = ctx.session.identity or ctx.session.identify(), (ctx.route, ctx.version, ctx.correlation_id)
            turn, now = [connection.read_ms, ctx.started_ms, NOT_YET], self._reading()
            rest = (ctx.request_bytes, UNANSWERED, about, ctx.annotations)
            self._append((REQUEST, now, who, *what, turn, self._answered, *rest))
        self.add_client_event(
            "connection-closed", ctx, by_client=connection.ended_by_client, reason=connection.close_reason
        )

    # -- what else happens ---------------------------------------------------------------------------------------------

    def throttled(self, ctx: RequestContext, quota: str, throttle_ms: int) -> None:
        """A quota makes a client wait, and its answer will say so."""
        if ctx.subject is None:
            return
        self.parked(ctx)
        _annotations_of(ctx).throttle_ms += throttle_ms
        self.add_client_event("throttle", ctx, **_request(ctx), quota=quota, throttle_time_ms=throttle_ms)

    def fault(self, ctx: RequestContext, rule_id: str, action: str) -> None:
        """A fault rule hits the request in flight; without one, the connection."""
        of_request: dict[str, object] = {"api": "", "version": -1, "correlation_id": -1}
        if ctx.subject is not None:
            of_request = _request(ctx)
            self.parked(ctx)
            _annotations_of(ctx).rule_id = rule_id
        self.add_client_event("fault", ctx, **of_request, rule_id=rule_id, action=action)

    def add_broker_fault(self, broker: int, rule_id: str, action: str) -> None:
        """A fault rule does something to a broker."""
        nobody = {"connection": -1, "listener": "", "peer": "", "client_id": "", "software_name": ""}
        nothing = {"software_version": "", "principal": "", "api": "", "version": -1, "correlation_id": -1}
        self.add_cluster_event("fault", broker, **nobody, **nothing, rule_id=rule_id, action=action)

    def set_throttle_time(self, ctx: RequestContext, throttle_ms: int) -> None:
        """A fault rule has another throttle time in the answer than a quota demands."""
        if ctx.subject is not None:
            _annotations_of(ctx).throttle_ms = throttle_ms

    def add_client_event(self, kind: str, ctx: RequestContext, **fields: object) -> None:
        """Something else about a client; `kind` and its own fields are those of an event (sluice.journal_events)."""
        identity = ctx.session.identity or ctx.session.identify()
        self._append((kind, self._reading(), identity, identity.broker, fields))

    def add_cluster_event(self, kind: str, broker: int, **fields: object) -> None:
        """Something that no client did."""
        self._append((kind, self._reading(), None, broker, fields))

    # -- reading -------------------------------------------------------------------------------------------------------

    @property
    def first(self) -> int:
        """The number of the oldest entry that is still there; `written`, where there is none."""
        return max(0, self.written - self.size)

    def entry(self, number: int) -> tuple[object, ...]:
        """An entry that is still there: the fields of a RequestEntry or an OtherEntry."""
        assert self.first <= number < self.written
        return self._ring[number % self.size]

    def ns(self, at_ms: float) -> int:
        """Nanoseconds since the epoch, of monotonic milliseconds."""
        return self._began_ns + round(at_ms * _NANOS_PER_MS)

    def ms(self, reading: float) -> float:
        """Monotonic milliseconds, of what the clock read."""
        return self._clock.ms_of(reading)

    def _append(self, entry: tuple[object, ...]) -> None:
        self._ring[self.written % self.size] = entry
        self.written += 1


def _request(ctx: RequestContext) -> dict[str, object]:
    return {"api": ctx.route.api_name, "version": ctx.version, "correlation_id": ctx.correlation_id}


def _annotations_of(ctx: RequestContext) -> RequestAnnotations:
    if ctx.annotations is None:
        ctx.annotations = RequestAnnotations()
    return ctx.annotations


def _completed(ctx: RequestContext, body: Sequence[bytes | memoryview], size: int) -> RequestAnnotations:
    """Return the annotations of a response of `size` bytes. The next request on the connection begins without."""
    annotations = _annotations_of(ctx)
    ctx.annotations = None
    if ctx.error_code and size:
        annotations.error_codes = _error_codes(ctx, body, size)
    return annotations


def _error_codes(ctx: RequestContext, body: Sequence[bytes | memoryview], size: int) -> tuple[int, ...]:
    """Return the error codes in a response of `size` bytes, each once, in their order.

    Few responses have an error, so that decoding those again costs less than counting the errors of all.
    """
    if not _HEADER_BYTES < size <= _LARGEST_READ_BYTES:
        return (ctx.error_code,)
    from sluice.protocol.error_codes import codes_in  # with the first error

    view, route = memoryview(b"".join(body)), ctx.route
    response, _ = decode_prefix(API_KEYS[route.api_key].response, route.version)(view, 0, len(view))
    return tuple(dict.fromkeys(codes_in(response))) or (ctx.error_code,)
