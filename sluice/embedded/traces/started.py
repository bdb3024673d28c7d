"""The brokers that tests start, for their traces.

A test framework sets `recorder`. Without one, no broker is kept, because a stopped broker still has its journal.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from sluice.journal_events import AnyEvent


class Recorded(NamedTuple):
    """The events of a broker or cluster.

    bootstrap: its addresses
    ahead_ns: how much its times are ahead of the machine's clock; None in virtual time, which is not related to it
    """

    bootstrap: str
    events: "Sequence[AnyEvent]"
    ahead_ns: int | None


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


Marks = Mapping[object, int]  # the number of events by journal


class Recorder:
    """The brokers that have started, until they have stopped and `forget_stopped` is called."""

    def __init__(self) -> None:
        self._brokers: dict[object, Recordable] = {}

    def add(self, key: object, broker: Recordable) -> None:
        """Add a broker in place of one with the same key."""
        self._brokers[key] = broker

    def forget_stopped(self) -> None:
        self._brokers = {key: broker for key, broker in self._brokers.items() if not broker._has_stopped}

    def marks(self) -> Marks:
        """Return the positions after the events so far; fast, because it is called for each test."""
        return dict(position for broker in self._brokers.values() if (position := broker._position) is not None)

    def recorded_since(self, marks: Marks) -> list[Recorded]:
        """Return the events of the brokers that have new ones. Raises SluiceError."""
        found = []
        for broker in self._brokers.values():
            position = broker._position
            after = 0 if position is None else marks.get(position.journal, 0)
            if position is not None and position.written > after:
                found.append(broker._recorded(after))
        return found


recorder: Recorder | None = None


def add(key: object, broker: Recordable) -> None:
    if recorder is not None:
        recorder.add(key, broker)
