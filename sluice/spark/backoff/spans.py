"""Failure spans of one client host: the events around failures, and the state of its open connections.

A *span* begins with a failure: an error response, no response, or a connection that the broker closed or refused. It
ends after a time without failures, or at its longest duration.
"""

import msgspec

from sluice.journal_events import ConnectionClosed, ConnectionOpened, ConnectionRefused, Request

HostEvent = ConnectionOpened | ConnectionRefused | ConnectionClosed | Request
KINDS: tuple[type[HostEvent], ...] = (ConnectionOpened, ConnectionRefused, ConnectionClosed, Request)
# Above it, the oldest are dropped; no client has more.
_MOST_CONNECTIONS = 1024
_MOST_TOPICS = 3  # in the key of an operation


class Limits(msgspec.Struct, frozen=True):
    """The limits that end a span: the time without a failure, and the longest duration."""

    quiet_ns: int = 60_000_000_000
    longest_ns: int = 600_000_000_000


class Host(msgspec.Struct):
    """The state of a host.

    open: for each open connection, its first event (key "") and the first successful request of each API
    failing: operations that failed and have not succeeded since, with the number of failures
    """

    open: dict[int, dict[str, HostEvent]] = {}
    span: list[HostEvent] = []
    began_ns: int = 0
    failed_ns: int = 0
    failing: dict[str, int] = {}

    def take(self, event: HostEvent, limits: Limits) -> list[HostEvent]:
        """Process one event; return the events of a span that ended before it, if any."""
        finished = self.ended_by(event.at_ns, limits)
        if not self.span and is_failure(event):
            self.span = sorted((each for known in self.open.values() for each in known.values()), key=by_time)
            self.began_ns = event.at_ns
        if self.span or is_failure(event):
            self._keep(event)
        self._note(event)
        return finished

    def ended_by(self, now_ns: int, limits: Limits) -> list[HostEvent]:
        """End the span if it is over; return its events, or an empty list."""
        if not self.span or now_ns <= self.ends_ns(limits):
            return []
        return self.end()

    def ends_ns(self, limits: Limits) -> int:
        return min(self.failed_ns + limits.quiet_ns, self.began_ns + limits.longest_ns)

    def end(self) -> list[HostEvent]:
        finished, self.span, self.failing = self.span, [], {}
        return finished

    def _keep(self, event: HostEvent) -> None:
        if is_failure(event):
            self.failed_ns = event.at_ns
        if not isinstance(event, Request):
            self.span.append(event)
            return
        operations = _operations(event)
        if is_failure(event):
            self.failing.update((each, self.failing.get(each, 0) + 1) for each in operations)
        elif any(each in self.failing for each in operations):
            self._succeeded(event, operations)
        elif event.api in self.open.get(event.connection, {}):
            return
        self.span.append(event)

    def _succeeded(self, event: Request, operations: list[str]) -> None:
        for each in operations:
            count = self.failing.pop(each, 0)
            # Batches without sequence numbers share one key, and several may have failed.
            if count > 1 and event.api == "Produce" and "@" not in each:
                self.failing[each] = count - 1

    def _note(self, event: HostEvent) -> None:
        if isinstance(event, ConnectionClosed):
            self.open.pop(event.connection, None)
            return
        if is_failure(event):
            return  # in a later span, this failure would be an extra attempt
        known = self.open.setdefault(event.connection, {})
        known.setdefault(event.api if isinstance(event, Request) else "", event)
        if len(self.open) > _MOST_CONNECTIONS:
            del self.open[next(iter(self.open))]


def is_failure(event: HostEvent) -> bool:
    if isinstance(event, Request):
        return bool(event.error_codes) or event.answered_ns is None
    return isinstance(event, ConnectionRefused) or (isinstance(event, ConnectionClosed) and not event.by_client)


def _operations(request: Request) -> list[str]:
    if request.api == "Produce":
        return request.attempt_key.split(",")
    topics = list(dict.fromkeys(each.topic for each in request.partitions))[:_MOST_TOPICS]
    about = request.group_id or request.transactional_id or ",".join(topics)
    return [f"{request.client_id} {request.api} {about}"]


def by_time(event: HostEvent) -> tuple[int, int]:
    return event.at_ns, event.seq
