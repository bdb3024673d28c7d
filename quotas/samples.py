"""The samples of a statistic, packed: there may be 100,000 clients with twelve of them each.

As objects of Python twelve samples take 2 kB, as numbers 400 bytes.
"""

from functools import cache
from struct import pack_into, unpack_from
from typing import NamedTuple


class Sample(NamedTuple):
    """One slot of the ring: what was recorded from `start_ms` on, for as long as the sample was the open one."""

    value: float
    start_ms: int
    last_event_ms: int
    event_count: int


class Windows:
    """How a statistic cuts time, and how its samples are packed. Those that do alike share one."""

    __slots__ = ("_ints", "_values", "event_window", "slots", "span_ms", "whole_windows_ms", "window_ms")

    def __init__(self, num_samples: int, window_ms: int, event_window: int, slots: int) -> None:
        self.slots = slots
        self.window_ms = window_ms
        self.span_ms = num_samples * window_ms
        self.whole_windows_ms = (num_samples - 1) * window_ms
        self.event_window = event_window
        # First the values of all slots, so that they can be added up, then the other numbers of all.
        self._values = f"{slots}d"
        self._ints = f"{3 * slots}q"

    def new_ring(self) -> bytearray:
        """Room for all samples."""
        return bytearray(8 * 4 * self.slots)

    def put(self, ring: bytearray, slot: int, sample: Sample) -> None:
        """Writes one sample."""
        self.put_value(ring, slot, sample.value)
        pack_into("3q", ring, 8 * (self.slots + 3 * slot), *sample[1:])

    def put_value(self, ring: bytearray, slot: int, value: float) -> None:
        """Writes the value of one sample alone."""
        pack_into("d", ring, 8 * slot, value)

    def values(self, ring: bytearray) -> tuple[float, ...]:
        """The values of all slots, of those without a sample zero."""
        return unpack_from(self._values, ring)

    def samples(self, ring: bytearray, used: int) -> list[Sample]:
        """Those of the first `used` slots, in this order."""
        ints = unpack_from(self._ints, ring, 8 * self.slots)
        values = self.values(ring)
        return [Sample(values[slot], *ints[3 * slot : 3 * slot + 3]) for slot in range(used)]


windows_of = cache(Windows)
