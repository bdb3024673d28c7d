"""What is kept of one host's events: those of times when something failed, and what is known of its open connections.

Most of what a fleet does is right at once, and says nothing of how it backs off. So a *span* begins with something that
failed (an answer with an error, no answer, a connection that the broker ended or refused) and ends when nothing has
failed for a while, or when it has lasted for so long that nobody would wait for it. Within it, what is right is kept as
far as it ends a row of tries: the first success of what had failed, and what each connection is used for.

A pure function of the events in their order, so that a stream with its state in pieces and a journal read as one have
the same spans.
"""

import msgspec

from sluice.journal_events import ConnectionClosed, ConnectionOpened, ConnectionRefused, Request

HostEvent = ConnectionOpened | ConnectionRefused | ConnectionClosed | Request
KINDS: tuple[type[HostEvent], ...] = (ConnectionOpened, ConnectionRefused, ConnectionClosed, Request)
# A host that holds more connections open than this is no client, and the first ones are forgotten.
_MOST_CONNECTIONS = 1024
_MOST_TOPICS = 3  # of those that a call is told by


class Limits(msgspec.Struct, frozen=True):
    """When a span ends, in nanoseconds: after so long without a failure, and at the latest after so long."""

    quiet_ns: int = 60_000_000_000
    longest_ns: int = 600_000_000_000


class Host(msgspec.Struct):
    """What is kept of a host.

    open: of each connection that is open, the event that it began with and the first request of each API that was right
    span: the events of the span that goes on; none: nothing fails
    began_ns: when that began
    failed_ns: when something failed in it last
    failing: what failed and has not succeeded since, and how often
    """

    open: dict[int, dict[str, HostEvent]] = {}
    span: list[HostEvent] = []
    began_ns: int = 0
    failed_ns: int = 0
    failing: dict[str, int] = {}

    def take(self, event: HostEvent, limits: Limits) -> list[HostEvent]:
        """Goes on by one event; returns the span that was over before it, or nothing."""
        finished = self.ended_by(event.at_ns, limits)
        if not self.span and is_failure(event):
            self.span = sorted((each for known in self.open.values() for each in known.values()), key=by_time)
            self.began_ns = event.at_ns
        if self.span or is_failure(event):
            self._keep(event)
        self._note(event)
        return finished

    def ended_by(self, now_ns: int, limits: Limits) -> list[HostEvent]:
        """The span, if it is over by now; else nothing."""
        if not self.span or now_ns <= self.ends_ns(limits):
            return []
        return self.end()

    def ends_ns(self, limits: Limits) -> int:
        """When the span ends if nothing more happens."""
        return min(self.failed_ns + limits.quiet_ns, self.began_ns + limits.longest_ns)

    def end(self) -> list[HostEvent]:
        """Ends the span, and returns it."""
        finished, self.span, self.failing = self.span, [], {}
        return finished

    def _keep(self, event: HostEvent) -> None:
        if is_failure(event):
            self.failed_ns = event.at_ns
        if not isinstance(event, Request):
            self.span.append(event)
            return
        what = _what(event)
        if is_failure(event):
            self.failing.update((each, self.failing.get(each, 0) + 1) for each in what)
        elif any(each in self.failing for each in what):
            self._succeeded(event, what)
        elif event.api in self.open.get(event.connection, {}):
            return
        self.span.append(event)

    def _succeeded(self, event: Request, what: list[str]) -> None:
        for each in what:
            count = self.failing.pop(each, 0)
            # Batches without numbers are called the same, and several may have failed.
            if count > 1 and event.api == "Produce" and "@" not in each:
                self.failing[each] = count - 1

    def _note(self, event: HostEvent) -> None:
        if isinstance(event, ConnectionClosed):
            self.open.pop(event.connection, None)
            return
        if is_failure(event):
            return  # of another span it would be a try too many
        known = self.open.setdefault(event.connection, {})
        known.setdefault(event.api if isinstance(event, Request) else "", event)
        if len(self.open) > _MOST_CONNECTIONS:
            del self.open[next(iter(self.open))]


def is_failure(event: HostEvent) -> bool:
    """Whether it is something that a client may have to wait after."""
    if isinstance(event, Request):
        return bool(event.error_codes) or event.answered_ns is None
    return isinstance(event, ConnectionRefused) or (isinstance(event, ConnectionClosed) and not event.by_client)


def _what(request: Request) -> list[str]:
    """What a request is about, as far as it is tried again: of Produce the batches, numbered if they have numbers."""
    if request.api == "Produce":
        return request.attempt_key.split(",")
    topics = list(dict.fromkeys(each.topic for each in request.partitions))[:_MOST_TOPICS]
    about = request.group_id or request.transactional_id or ",".join(topics)
    return [f"{request.client_id} {request.api} {about}"]


def by_time(event: HostEvent) -> tuple[int, int]:
    """The order of the journal: what sorts events that came out of order."""
    return event.at_ns, event.seq
