"""The window of time with the most events."""


class Busiest:
    """The highest number of events in one of the windows of a fixed length, which follow each other without gaps."""

    __slots__ = ("_count", "_window", "_window_ns", "highest")

    def __init__(self, window_ns: int) -> None:
        self._window_ns = window_ns
        self._window = self._count = self.highest = 0

    def add(self, at_ns: int) -> None:
        window = at_ns // self._window_ns
        if window != self._window:
            self._window, self._count = window, 0
        self._count += 1
        if self._count > self.highest:
            self.highest = self._count
