"""What happens by itself: again and again, or once when its time has come."""

from collections.abc import Callable

from .operation import DelayedOperation
from .purgatory import DelayedOperationPurgatory
from .timer import Timer


class Housekeeping(DelayedOperationPurgatory):
    """The purgatory of all that no client waits for. It ends with its timer."""

    __slots__ = ()

    def __init__(self, timer: Timer) -> None:
        super().__init__("Housekeeping", timer)

    def every(self, interval_ms: float, action: Callable[[], None]) -> None:
        """Does something again and again, the first time in `interval_ms`."""
        self.delay(_Every(interval_ms, action, self))

    def later(self, delay_ms: float, action: Callable[[], None]) -> None:
        """Does something once, when time has passed."""
        self.delay(_Later(delay_ms, action))


class _Every(DelayedOperation):
    __slots__ = ("_action", "_housekeeping")

    def __init__(self, interval_ms: float, action: Callable[[], None], housekeeping: Housekeeping) -> None:
        super().__init__(interval_ms)
        self._action = action
        self._housekeeping = housekeeping

    def on_complete(self) -> None:
        self._housekeeping.every(self.delay_ms, self._action)
        self._action()


class _Later(DelayedOperation):
    __slots__ = ("_action",)

    def __init__(self, delay_ms: float, action: Callable[[], None]) -> None:
        super().__init__(delay_ms)
        self._action = action

    def on_complete(self) -> None:
        self._action()
