"""Assertions about clients, based on the journal: `broker.assert_throttled("shop", at_least_ms=500)`.

They check the journal as it is now; use `wait_for` to wait. A failure lists the expectation, the observation, the
closest other event, and the relevant events. If the journal has lost events, assertions that something did not happen
fail.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from sluice.broker.journal.format_event import format_event
from sluice.errors import ArgumentError, SluiceError
from sluice.journal_events import AnyEvent, ClientEvent, Gap, Request, Throttle
from sluice.text.arguments import Duration, Index, checks_arguments
from sluice.text.error_text import did_you_mean, one_of

from .closest import closest
from .wait_conditions import Journal

if TYPE_CHECKING:
    from sluice.audit.judge.model.verdict import Verdict

_QUOTAS = ("Produce", "Fetch", "Request", "ControllerMutation")
_EVENTS_SHOWN = 20
_LAST_EVENTS = 40

_E = TypeVar("_E", Request, Throttle)


@checks_arguments
class JournalAssertions:
    """The assertions of a broker with a journal."""

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers."""
        raise NotImplementedError

    @property
    def journal(self) -> Journal:
        """The journal."""
        raise NotImplementedError

    def assert_throttled(
        self, client_id: str, *, at_least_ms: Duration = 1, quota: str | None = None, after: Index = 0
    ) -> list[Throttle]:
        """Assert that quotas throttled a client; return the throttles.

        Args:
            client_id: Client id.
            at_least_ms: Minimum total throttle time in ms.
            quota: Produce, Fetch, Request or ControllerMutation; None: any.
            after: `seq` of the last event to ignore.
        """
        __tracebackhide__ = True
        expected = f"client {client_id} throttled for {at_least_ms:.10g} ms or more{_by(quota)}"
        found, _ = self._throttles(client_id, quota, after)
        if _total_ms(found) < at_least_ms:
            near = closest(self.journal.events(after=after), Throttle, {"client_id": client_id, "quota": quota or ()})
            raise AssertionError(self._failure_text(expected, _throttled(found), found, client_id, after, near))
        return found

    def assert_not_throttled(self, client_id: str, *, quota: str | None = None, after: Index = 0) -> None:
        """Assert that a client sent something and was not throttled. Arguments as in `assert_throttled`."""
        __tracebackhide__ = True
        expected = f"client {client_id} not throttled{_by(quota)}"
        found, lost = self._throttles(client_id, quota, after)
        if found or lost or not self._clients(after)[client_id]:  # a client without events proves nothing
            raise AssertionError(self._failure_text(expected, _throttled(found), found, client_id, after))

    def assert_requests(
        self,
        api: str | Collection[str] = (),
        *,
        client_id: str | Collection[str] = (),
        broker: int | Collection[int] = (),
        after: Index = 0,
        where: Callable[[Request], object] | None = None,
        exactly: Index | None = None,
        at_least: Index | None = None,
        at_most: Index | None = None,
    ) -> list[Request]:
        """Assert the number of matching requests, by default at least one; return them.

        Args:
            api: API name, or several.
            client_id: Client id, or several.
            broker: Node id, or several.
            after: `seq` of the last event to ignore.
            where: Predicate of matching requests.
            exactly: Exact number; excludes `at_least` and `at_most`.
            at_least: Minimum number.
            at_most: Maximum number.
        """
        __tracebackhide__ = True
        least, most = _bounds(exactly, at_least, at_most)
        given = self.journal.events(after=after, kind="request", client_id=client_id, api=api, broker=broker)
        found, lost = _split_lost(Request, given)
        kept = [request for request in found if where is None or where(request)]
        is_unsure = lost and most is not None
        if len(kept) < least or (most is not None and len(kept) > most) or is_unsure:
            filters = f"{_of('', api)} requests{_of(' of client', client_id)}{_of(' to broker', broker)}".strip()
            expected = f"{_number(least, most)} {filters}" + (" for which `where` is true" if where else "")
            refused = f"; `where` is false for {len(found) - len(kept)} more" if where else ""
            one = client_id if isinstance(client_id, str) else None
            wanted = {"api": api, "client_id": client_id, "broker": broker}
            near = closest(self.journal.events(after=after), Request, wanted, where) if least and not kept else ()
            raise AssertionError(self._failure_text(expected, f"{len(kept)}{refused}", kept, one, after, near))
        return kept

    def assert_backoff(
        self, client_id: str, kip: int = 580, *, settings: Mapping[str, float] | None = None, after: Index = 0
    ) -> "list[Verdict]":
        """Assert that a client backs off between attempts as a KIP specifies.

        Requires a fault that lasts for at least four waits of one sequence of attempts; otherwise the result is
        uncertain, and the assertion fails.

        Args:
            client_id: Client id.
            kip: 580 (retried requests) or 144 (connections).
            settings: The client's configuration by Kafka's names; defaults are Kafka's.
            after: `seq` of the last event to ignore.

        Returns:
            The verdict of the audit's judge for each sequence.
        """
        __tracebackhide__ = True
        from .backoff_assertions import backoffs  # few tests need the judge

        found = backoffs(self.journal.events(after=after), client_id, kip, settings or {})
        if not found.passed:
            raise AssertionError("\n".join([found.describe(), *self._client_summary(client_id, after)]))
        return found.passed

    def _throttles(self, client_id: str, quota: str | None, after: int) -> tuple[list[Throttle], int]:
        if quota is not None and quota not in _QUOTAS:
            raise ArgumentError(f"quota: {one_of(_QUOTAS, quota)}")
        given = self.journal.events(after=after, kind="throttle", client_id=client_id)
        found, lost = _split_lost(Throttle, given)
        return [each for each in found if quota in (None, each.quota)], lost

    def _clients(self, after: int) -> Counter[str]:
        events = self.journal.events(after=after)
        return Counter(event.client_id for event in events if isinstance(event, ClientEvent) and event.client_id)

    def _failure_text(
        self,
        expected: str,
        seen: str,
        count: Sequence[AnyEvent],
        client_id: str | None,
        after: int,
        near: Sequence[str] = (),
    ) -> str:
        lines = [f"expected: {expected}", f"observed: {seen}", *near]
        lost = sum(event.lost for event in self.journal.events(after=after) if isinstance(event, Gap))
        if lost:
            lines.append(f"{lost} events are no longer kept; increase sluice.journal.events, or pass after=SEQ")
        if client_id is not None:
            lines += self._client_summary(client_id, after)
        if count:
            return "\n".join([*lines, "matching events:", *_lines(count, _EVENTS_SHOWN)])
        others = self.journal.events(after=after, client_id=client_id or ())
        what = f"events of client {client_id}" if client_id else "events"
        return "\n".join([*lines, f"the last {what}:", *_lines(others, _EVENTS_SHOWN)] if others else lines)

    def _client_summary(self, client_id: str, after: int) -> list[str]:
        clients = self._clients(after)
        if not clients[client_id]:
            there = f"clients in the journal: {', '.join(clients)}" if clients else "no client has sent a request"
            return [f"no events of client {client_id}; {there}{did_you_mean(client_id, clients)}"]
        requests = self.journal.events(after=after, kind="request", client_id=client_id)
        apis = Counter(request.api for request in requests if isinstance(request, Request))
        return [f"its requests: {', '.join(f'{count} {api}' for api, count in apis.items()) or 'none'}"]


def last_events(broker: JournalAssertions) -> str:
    try:
        events = broker.journal.events()
    except SluiceError as error:
        return str(error)
    return "\n".join([f"broker {broker.bootstrap}: {len(events)} events", *_lines(events, _LAST_EVENTS)])


def _lines(events: Sequence[AnyEvent], most: int) -> list[str]:
    earlier = len(events) - most
    lines = [f"  {format_event(event)}" for event in events[-most:]]
    return [f"  ... {earlier} earlier", *lines] if earlier > 0 else lines


def _split_lost(kind: type[_E], events: Iterable[AnyEvent]) -> tuple[list[_E], int]:
    found: list[_E] = []
    lost = 0
    for event in events:
        if isinstance(event, kind):
            found.append(event)
        elif isinstance(event, Gap):
            lost += event.lost
    return found, lost


def _total_ms(found: Iterable[Throttle]) -> int:
    return sum(each.throttle_time_ms for each in found)


def _throttled(found: Sequence[Throttle]) -> str:
    if not found:
        return "not throttled"
    longest = max(each.throttle_time_ms for each in found)
    times = "once" if len(found) == 1 else f"{len(found)} times"
    return f"throttled for {_total_ms(found)} ms: {times}, for {longest} ms at most"


def _by(quota: str | None) -> str:
    return "" if quota is None else f" by its {quota} quota"


def _bounds(exactly: Index | None, at_least: Index | None, at_most: Index | None) -> tuple[int, int | None]:
    if exactly is not None:
        if at_least is not None or at_most is not None:
            raise ArgumentError("exactly excludes at_least and at_most")
        return exactly, exactly
    if at_least is None:
        return (1 if at_most is None else 0), at_most
    return at_least, at_most


def _number(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"


def _of(what: str, values: str | int | Collection[str] | Collection[int]) -> str:
    several = (values,) if isinstance(values, str | int) else values
    return f"{what} {' or '.join(map(str, several))}" if several else ""
