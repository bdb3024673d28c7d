"""The brokers that tests start, for their traces.

A test framework sets `recorder`. Without one, no broker is kept, because a stopped broker still has its journal.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from sluice.journal_events import AnyEvent


class Recorded(NamedTuple):
    """The events of a broker or cluster.

    bootstrap: its addresses
    ahead_ns: how much its times are ahead of the machine's clock; None in virtual time, which is not related to it
    notes: times and lines to show beside the events
    """

    bootstrap: str
    events: "Sequence[AnyEvent]"
    ahead_ns: int | None
    notes: "Sequence[tuple[int, str]]" = ()


class Position(NamedTuple):
    """The number of events in a journal so far. A broker that was reset has another journal."""

    journal: object
    written: int


class Recordable(Protocol):
    """A Broker or SyncBroker; `_recorded` may be called in any thread, if the broker runs in its own."""

    @property
    def _position(self) -> Position | None: ...

    @property
    def _has_stopped(self) -> bool: ...

    def _recorded(self, after: int = 0) -> Recorded: ...


class Recorder:
    """The brokers of this process and, of each journal, the position at which the current test began."""

    def __init__(self) -> None:
        self._brokers: dict[object, Recordable] = {}
        self._began_at: dict[object, int] = {}

    def add(self, key: object, broker: Recordable) -> None:
        """Add a broker in place of one with the same key."""
        self._brokers[key] = broker

    def begin_test(self) -> None:
        """Forget stopped brokers, and the events so far. Reads numbers only, because it is called for each test."""
        self._brokers = {key: broker for key, broker in self._brokers.items() if not broker._has_stopped}
        positions = (broker._position for broker in self._brokers.values())
        self._began_at = dict(position for position in positions if position is not None)

    def recorded(self) -> list[Recorded]:
        """Return the events of the current test, of the brokers that have some. Raises SluiceError."""
        found = []
        for broker in self._brokers.values():
            position = broker._position
            after = 0 if position is None else self._began_at.get(position.journal, 0)
            if position is not None and position.written > after:
                found.append(broker._recorded(after))
        return found


recorder: Recorder | None = None


def add(key: object, broker: Recordable) -> None:
    if recorder is not None:
        recorder.add(key, broker)
