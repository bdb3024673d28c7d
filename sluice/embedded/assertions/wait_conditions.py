"""The conditions of `broker.wait_for`, and the descriptions of their timeouts.

Conditions are polled every few milliseconds.
"""

from collections.abc import Callable, Collection
from inspect import isawaitable
from typing import Generic, NamedTuple, Protocol, TypedDict, TypeGuard, TypeVar

from sluice.broker.journal.format_event import format_event
from sluice.embedded.fault_control import raise_problem
from sluice.errors import ArgumentError, ConfigError, SluiceError
from sluice.journal_events import KINDS, AnyEvent, Event
from sluice.text.arguments import described
from sluice.text.error_text import expected, one_of

from .closest import closest

POLL_INTERVAL_MS = 5.0
_EVENTS_SHOWN = 10

_T_co = TypeVar("_T_co", covariant=True)
_T = TypeVar("_T")
_E = TypeVar("_E", bound=Event)


class WaitOptions(TypedDict, total=False):
    """The options of `wait_for` for events, besides `where`."""

    times: int
    after: int
    client_id: str | Collection[str]
    api: str | Collection[str]
    broker: int | Collection[int]
    timeout_s: float


class Journal(Protocol):
    @property
    def last_seq(self) -> int: ...

    def events(
        self,
        *,
        after: int = 0,
        kind: str | Collection[str] = (),
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
    ) -> list[AnyEvent]: ...


class Fault(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def hits(self) -> int: ...

    @property
    def matched(self) -> int: ...

    @property
    def problem(self) -> str: ...


class Wait(Protocol[_T_co]):
    def poll(self) -> _T_co | None:
        """Return the result; None while the condition does not hold."""

    def describe_timeout(self, timeout_s: float) -> str:
        """Return what happened instead, in several lines."""


class WaitDiagnostics:
    def __init__(self, journal: Journal | None) -> None:
        self._journal = journal
        self._start_seq = 0 if journal is None else journal.last_seq

    def describe(self) -> str:
        if self._journal is None:
            return "no journal to show events from: sluice.journal.events is 0"
        count = self._journal.last_seq - self._start_seq
        last = self._journal.events(after=max(0, self._journal.last_seq - _EVENTS_SHOWN))
        lines = "".join(f"\n  {format_event(event)}" for event in last)
        happened = f"{count} journal events during the wait" if count else "no journal events during the wait"
        return f"{happened}; last events:{lines}" if last else f"{happened}, nor before"


class Filters(NamedTuple):
    after: int
    client_id: str | Collection[str]
    api: str | Collection[str]
    broker: int | Collection[int]

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._asdict().items() if value not in (0, ()))


class EventsWait(Generic[_E]):
    def __init__(
        self, journal: Journal, wanted: type[_E], filters: Filters, where: Callable[[_E], object] | None, times: int
    ) -> None:
        self._journal = journal
        self._wanted = wanted
        self._kinds = [kind for kind, each in KINDS.items() if issubclass(each, wanted)]
        self._filters = filters
        self._where = where
        self._times = times
        self._read_up_to = filters.after
        self._found: list[_E] = []
        self._filtered_out = 0
        self._diagnostics = WaitDiagnostics(journal)

    def poll(self) -> list[_E] | None:
        last = self._journal.last_seq
        _, client_id, api, broker = self._filters
        found = self._journal.events(
            after=self._read_up_to, kind=self._kinds, client_id=client_id, api=api, broker=broker
        )
        self._read_up_to = max(self._read_up_to, last, found[-1].seq if found else 0)
        for event in found:
            if isinstance(event, self._wanted):  # a Gap passes every filter
                self._add(event)
        return self._found[: self._times] if len(self._found) >= self._times else None

    def _add(self, event: _E) -> None:
        if self._where is None or self._where(event):
            self._found.append(event)
        else:
            self._filtered_out += 1

    def describe_timeout(self, timeout_s: float) -> str:
        filters = f" with {self._filters}" if str(self._filters) else ""
        filtered_out = f", and {self._filtered_out} for which `where` is false" if self._where is not None else ""
        found = f"{len(self._found)} of {self._times} {self._wanted.__name__}{filters}{filtered_out}"
        after, client_id, api, broker = self._filters
        wanted = {"api": api, "client_id": client_id, "broker": broker}
        events = () if self._found else self._journal.events(after=after, kind=self._kinds)
        near = closest(events, self._wanted, wanted, self._where)
        return "\n".join([f"after {timeout_s:g} s: {found}; {self._diagnostics.describe()}", *near])


class ConditionWait(Generic[_T]):
    def __init__(self, journal: Journal | None, function: Callable[[], _T]) -> None:
        self._function = function
        self._diagnostics = WaitDiagnostics(journal)
        self._returned: _T | None = None

    def poll(self) -> _T | None:
        self._returned = self._function()
        if isawaitable(self._returned):
            raise SluiceError("wait_for: expected a function to call repeatedly, got a coroutine function")
        return self._returned or None

    def describe_timeout(self, timeout_s: float) -> str:
        name = getattr(self._function, "__qualname__", "the function")
        return f"after {timeout_s:g} s: {name} still returns {self._returned!r}; {self._diagnostics.describe()}"


class FaultHitsWait:
    def __init__(self, journal: Journal | None, fault: Fault, times: int) -> None:
        self._fault = fault
        self._times = times
        self._diagnostics = WaitDiagnostics(journal)

    def poll(self) -> int | None:
        hits = self._fault.hits
        if hits < self._times:
            raise_problem(self._fault.id, self._fault.problem)
            return None
        return hits

    def describe_timeout(self, timeout_s: float) -> str:
        fault = self._fault
        found = f"fault {fault.id} has {fault.hits} of {self._times} hits, {fault.matched} matched"
        return f"after {timeout_s:g} s: {found}; {self._diagnostics.describe()}"


def wait_condition(
    read_journal: Callable[[], Journal],
    what: type[_E] | str | Fault | Callable[[], object],
    where: Callable[[_E], object] | None,
    times: int,
    filters: Filters,
) -> Wait[object]:
    """Return the wait for `what`. Without a journal, `read_journal` raises ConfigError."""
    if isinstance(what, str):
        return EventsWait(read_journal(), _event_named(what), filters, where, times)  # type: ignore[arg-type]
    if _is_event_type(what):
        return EventsWait(read_journal(), what, filters, where, times)
    try:
        journal = read_journal()
    except ConfigError:
        journal = None
    if isinstance(what, type):
        raise ArgumentError(f"wait_for: what: {expected('a type of sluice.journal_events', described(what))}")
    return ConditionWait(journal, what) if callable(what) else FaultHitsWait(journal, what, times)


def _event_named(name: str) -> type[AnyEvent]:
    by_name = {each.__name__: each for each in KINDS.values()}
    found = by_name.get(name) or KINDS.get(name)
    if found is None:
        raise ArgumentError(f"wait_for: what: {one_of(by_name, name)}")
    return found


def _is_event_type(what: type[_E] | Fault | Callable[[], object]) -> TypeGuard[type[_E]]:
    return isinstance(what, type) and issubclass(what, Event)
