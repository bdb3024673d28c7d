"""Bursts: whether so many events came within so short a time."""

from collections import deque

from sluice.journal_events import Event

from .examples import Examples

_NS_PER_S = 1_000_000_000


class Burst:
    """The fastest `size` events in a row, if they came within `seconds`.

    count: number of all events
    fastest_ns: shortest time of `size` events in a row; 0 if they never came within `seconds`
    examples: the last of the events of such bursts
    """

    __slots__ = ("_times", "_within_ns", "count", "examples", "fastest_ns", "size")

    def __init__(self, size: int, seconds: float) -> None:
        self.size = size
        self._within_ns = round(seconds * _NS_PER_S)
        self._times: deque[int] | None = None  # most clients have no such events
        self.count = self.fastest_ns = 0
        self.examples = Examples()

    def add(self, event: Event) -> None:
        at_ns = event.at_ns
        times = self._times
        if times is None:
            times = self._times = deque(maxlen=self.size)
        self.count += 1
        times.append(at_ns)
        if self.count >= self.size and at_ns - times[0] <= self._within_ns:
            lasted_ns = at_ns - times[0]
            self.examples.note(event)
            if not self.fastest_ns or lasted_ns < self.fastest_ns:
                self.fastest_ns = max(lasted_ns, 1)

    @property
    def in_words(self) -> str:
        return f"{self.size:,} within {self.fastest_ns / _NS_PER_S:.2g} s"
