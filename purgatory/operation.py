"""An operation that waits: for something to happen, for its time to pass, or for whichever comes first.

Follows Kafka's `DelayedOperation`, without its locks: one thread owns all state. A throttled response, a muted
connection, a long-poll fetch, a produce with acks=all and a join that waits for the other members are all operations.
"""

from typing import Protocol

from .wheel import TimerTask


class OperationHolder(Protocol):
    """The purgatory in which an operation waits, as the operation uses it."""

    def release_completed(self, operation: "DelayedOperation") -> None:
        """Release an operation that completed before its time."""

    def release_expired(self) -> None:
        """Release an operation that the timer has already removed."""


class DelayedOperation(TimerTask):
    """Completes exactly once: by `try_complete`, by `force_complete`, or by its time, whichever is first.

    A subclass says in `on_complete` what then happens. One that waits for more than its time says in `try_complete`
    when that has come, and in `on_expiration` what is special about having run out of time.
    """

    __slots__ = ("_purgatory", "completed", "delay_ms")

    def __init__(self, delay_ms: float) -> None:
        self.delay_ms = delay_ms
        self.completed = False
        self._before = None
        self._purgatory: OperationHolder | None = None  # where it waits, or waited, for its time

    def try_complete(self) -> bool:
        """Completes the operation if what it waits for has come: checks, and if so returns `self.force_complete()`.

        True if this call completed it. One that only waits for its time never does, as here.
        """
        return False

    def force_complete(self) -> bool:
        """Completes the operation within this call: true for the first caller, false and no effect for later ones.

        When `on_complete` starts, the operation counts as completed and no longer waits for its time. What it raises
        goes to the caller.
        """
        if self.completed:
            return False
        self.completed = True
        purgatory = self._purgatory
        if purgatory is not None:
            purgatory.release_completed(self)
        self.on_complete()
        return True

    def on_complete(self) -> None:
        """What the operation was for. Called exactly once, in time or not."""
        raise NotImplementedError

    def on_expiration(self) -> None:
        """Called after `on_complete`, and only if time completed the operation."""

    def run(self) -> None:
        """Time has passed. Only the timer calls this, so the operation is in a purgatory and not completed.

        Completes it as `force_complete` does, but has no timer to cancel.
        """
        purgatory = self._purgatory
        assert purgatory is not None
        self.completed = True
        purgatory.release_expired()
        self.on_complete()
        self.on_expiration()
