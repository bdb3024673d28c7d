"""Bursts: whether one connection or host caused so many events within so short a time.

Clients of a fleet have the same client id, so the events of all of them show no rate of any.
"""

from collections.abc import Hashable

from sluice.journal_events import Event

from .examples import Examples

_NS_PER_S = 1_000_000_000
_LEAST_S = 0.001  # in words: the resolution of the journal
_MOST_SOURCES = 1024


class Burst:
    """The fastest `size` events in a row of one source, if they came within `seconds`.

    Events are counted from the first one, or from the one after the last `size` or `seconds`. So `size` events that do
    not begin there may be missed, but not twice as many.

    count: number of all events
    fastest_ns: shortest time of `size` events in a row; 0 if they never came within `seconds`
    examples: the last of the events of such bursts
    """

    __slots__ = ("_windows", "_within_ns", "count", "examples", "fastest_ns", "size")

    def __init__(self, size: int, seconds: float) -> None:
        self.size = size
        self._within_ns = round(seconds * _NS_PER_S)
        self._windows: dict[Hashable, list[int]] = {}  # by source: time of the first event, and number of events
        self.count = self.fastest_ns = 0
        self.examples = Examples()

    def add(self, event: Event, source: Hashable) -> None:
        at_ns = event.at_ns
        self.count += 1
        window = self._windows.get(source)
        if window is None:
            if len(self._windows) >= _MOST_SOURCES:
                del self._windows[next(iter(self._windows))]
            self._windows[source] = [at_ns, 1]
            return
        lasted_ns = at_ns - window[0]
        if lasted_ns > self._within_ns:
            window[0], window[1] = at_ns, 1
            return
        window[1] += 1
        if window[1] == self.size:
            window[0], window[1] = at_ns, 1
            self.examples.note(event)
            if not self.fastest_ns or lasted_ns < self.fastest_ns:
                self.fastest_ns = max(lasted_ns, 1)

    @property
    def in_words(self) -> str:
        return f"{self.size:,} within {max(self.fastest_ns / _NS_PER_S, _LEAST_S):.2g} s"
