"""A delayed operation: it completes on an event, at its deadline, or on whichever is first.

Follows Kafka's `DelayedOperation`, without locks: one thread owns all state.
"""

from collections.abc import Callable
from typing import Protocol

from .wheel import TimerTask


class OperationHolder(Protocol):
    """The part of a purgatory that its operations call."""

    def release_completed(self, operation: "DelayedOperation") -> None: ...

    def release_expired(self) -> None: ...


class DelayedOperation(TimerTask):
    """An operation that completes exactly once: by `try_complete`, by `force_complete`, or at its deadline.

    A subclass implements `on_complete`; also `try_complete` if it can complete before its deadline, and `on_expiration`
    if expiry needs more than `on_complete`.
    """

    __slots__ = ("_purgatory", "completed", "delay_ms")

    def __init__(self, delay_ms: float) -> None:
        self.delay_ms = delay_ms
        self.completed = False
        self._before = None
        self._purgatory: OperationHolder | None = None  # set when a purgatory delays it

    def try_complete(self) -> bool:
        """Complete the operation if its condition is met, with `return self.force_complete()`; else return False.

        By default, only the deadline completes it.
        """
        return False

    def force_complete(self) -> bool:
        """Complete the operation within this call; return False, without effect, if it is already completed."""
        if self.completed:
            return False
        self.completed = True
        purgatory = self._purgatory
        if purgatory is not None:
            purgatory.release_completed(self)
        self.on_complete()
        return True

    def on_complete(self) -> None:
        """Run the operation's action. Called once, after the timer is cancelled."""
        raise NotImplementedError

    def on_expiration(self) -> None:
        """Handle expiry. Called after `on_complete`, only if the deadline completed the operation."""

    def run(self) -> None:
        """Complete the operation at its deadline; called only by the timer."""
        purgatory = self._purgatory
        assert purgatory is not None
        self.completed = True
        purgatory.release_expired()
        self.on_complete()
        self.on_expiration()


class DelayedAction(DelayedOperation):
    """An action that runs at the deadline, or earlier: when `may_run` returns True, or by `force_complete`."""

    __slots__ = ("_action", "_may_run")

    def __init__(
        self, delay_ms: float, action: Callable[[], object], may_run: Callable[[], bool] | None = None
    ) -> None:
        super().__init__(delay_ms)
        self._action = action
        self._may_run = may_run

    def try_complete(self) -> bool:
        return self._may_run is not None and self._may_run() and self.force_complete()

    def on_complete(self) -> None:
        self._action()
