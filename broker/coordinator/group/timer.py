"""Timers of groups and their members."""

from collections.abc import Callable

from sluice.broker.requests.action_queue import ActionQueue
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory


class GroupTimer(DelayedOperation):
    """Runs an action once after a delay, unless it is cancelled."""

    __slots__ = ("_action", "_actions")

    def __init__(
        self,
        purgatory: DelayedOperationPurgatory,
        actions: ActionQueue,
        delay_ms: float,
        action: Callable[[], object],
    ) -> None:
        super().__init__(delay_ms)
        self._action = action
        self._actions = actions
        purgatory.delay(self)

    def cancel(self) -> None:
        """Do not run the action, if it has not run yet."""
        self.force_complete()

    def on_complete(self) -> None:
        pass  # cancelled, or about to act

    def on_expiration(self) -> None:
        self._action()
        self._actions.complete()  # no read ends here that would send the answers and wake readers of the log
