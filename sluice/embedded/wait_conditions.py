"""What a test waits for, and what it is told when that does not come: `broker.wait_for`.

Nothing tells of what happens: it is looked, every few milliseconds. So what is waited for may be anything, and whoever
looks may be a coroutine or a thread.
"""

from collections.abc import Callable, Collection
from inspect import isawaitable
from typing import Generic, NamedTuple, Protocol, TypeGuard, TypeVar

from sluice.broker.journal.format_event import in_words
from sluice.errors import ConfigError, SluiceError
from sluice.journal_events import KINDS, AnyEvent, Event

from .fault_control import raise_problem

LOOK_EVERY_MS = 5.0
_EVENTS_TOLD = 10

_T_co = TypeVar("_T_co", covariant=True)
_T = TypeVar("_T")
_E = TypeVar("_E", bound=Event)


class Journal(Protocol):
    """What is read of a journal: JournalReader and its twin for other threads."""

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
    """What is looked at of a fault: LocalFault and its twin for other threads."""

    @property
    def id(self) -> str: ...

    @property
    def hits(self) -> int: ...

    @property
    def matched(self) -> int: ...

    @property
    def problem(self) -> str: ...


class HasJournal(Protocol):
    """A broker whose journal can be read, unless it has none."""

    @property
    def journal(self) -> Journal:
        """Raises ConfigError if there is none."""


class Wait(Protocol[_T_co]):
    """Something that is waited for."""

    def look(self) -> _T_co | None:
        """What was waited for, None while it is not there."""

    def told(self, timeout_s: float) -> str:
        """What there was instead, several lines."""


class Meanwhile:
    """What happens while someone waits."""

    def __init__(self, journal: Journal | None) -> None:
        self._journal = journal
        self._began = 0 if journal is None else journal.last_seq

    def told(self) -> str:
        if self._journal is None:
            return "there is no journal to tell more: sluice.journal.events is 0"
        count = self._journal.last_seq - self._began
        last = self._journal.events(after=max(0, self._journal.last_seq - _EVENTS_TOLD))
        lines = "".join(f"\n  {in_words(event)}" for event in last)
        happened = f"meanwhile the journal has {count} more events" if count else "meanwhile nothing happened"
        return f"{happened}; the last of all are:{lines}" if last else f"{happened}, nor before"


class Filters(NamedTuple):
    """Which events are looked at, as `JournalReader.events` has it."""

    after: int
    client_id: str | Collection[str]
    api: str | Collection[str]
    broker: int | Collection[int]

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._asdict().items() if value not in (0, ()))


class EventsWait(Generic[_E]):
    """Waits for so many events of one type."""

    def __init__(
        self, journal: Journal, wanted: type[_E], filters: Filters, where: Callable[[_E], object] | None, times: int
    ) -> None:
        self._journal = journal
        self._wanted = wanted
        self._kinds = [kind for kind, each in KINDS.items() if issubclass(each, wanted)]
        self._filters = filters
        self._where = where
        self._times = times
        self._looked_at = filters.after
        self._found: list[_E] = []
        self._refused = 0  # by `where`
        self._meanwhile = Meanwhile(journal)

    def look(self) -> list[_E] | None:
        last = self._journal.last_seq
        _, client_id, api, broker = self._filters
        found = self._journal.events(
            after=self._looked_at, kind=self._kinds, client_id=client_id, api=api, broker=broker
        )
        self._looked_at = max(self._looked_at, last, found[-1].seq if found else 0)
        for event in found:
            if isinstance(event, self._wanted):  # a gap comes whatever is asked for
                self._take(event)
        return self._found[: self._times] if len(self._found) >= self._times else None

    def _take(self, event: _E) -> None:
        if self._where is None or self._where(event):
            self._found.append(event)
        else:
            self._refused += 1

    def told(self, timeout_s: float) -> str:
        filters = f" with {self._filters}" if str(self._filters) else ""
        refused = f", and {self._refused} for which `where` is false" if self._where is not None else ""
        found = f"{len(self._found)} of {self._times} {self._wanted.__name__}{filters}{refused}"
        return f"after {timeout_s:g} s: {found}; {self._meanwhile.told()}"


class TruthWait(Generic[_T]):
    """Waits until a function returns something true."""

    def __init__(self, journal: Journal | None, function: Callable[[], _T]) -> None:
        self._function = function
        self._meanwhile = Meanwhile(journal)
        self._returned: _T | None = None

    def look(self) -> _T | None:
        self._returned = self._function()
        if isawaitable(self._returned):
            raise SluiceError("wait_for: the function must not be a coroutine: it is called again and again")
        return self._returned or None

    def told(self, timeout_s: float) -> str:
        name = getattr(self._function, "__qualname__", "the function")
        return f"after {timeout_s:g} s: {name} still returns {self._returned!r}; {self._meanwhile.told()}"


class HitsWait:
    """Waits until a fault has hit so often."""

    def __init__(self, journal: Journal | None, fault: Fault, times: int) -> None:
        self._fault = fault
        self._times = times
        self._meanwhile = Meanwhile(journal)

    def look(self) -> int | None:
        hits = self._fault.hits
        if hits < self._times:
            raise_problem(self._fault.id, self._fault.problem)
            return None
        return hits

    def told(self, timeout_s: float) -> str:
        fault = self._fault
        found = f"fault {fault.id} has hit {fault.hits} of {self._times} times, of {fault.matched} that matched"
        return f"after {timeout_s:g} s: {found}; {self._meanwhile.told()}"


def wait_condition(
    broker: HasJournal,
    what: type[_E] | Fault | Callable[[], object],
    where: Callable[[_E], object] | None,
    times: int,
    filters: Filters,
) -> Wait[object]:
    """Return the condition that the arguments of `Broker.wait_for` describe."""
    if _is_event_type(what):
        return EventsWait(broker.journal, what, filters, where, times)
    try:
        journal = broker.journal
    except ConfigError:
        journal = None
    return TruthWait(journal, what) if callable(what) else HitsWait(journal, what, times)


def _is_event_type(what: type[_E] | Fault | Callable[[], object]) -> TypeGuard[type[_E]]:
    return isinstance(what, type) and issubclass(what, Event)
