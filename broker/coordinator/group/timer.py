"""Timers of groups and their members."""

from collections.abc import Callable

from sluice.broker.requests.action_queue import ActionQueue
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory


class GroupTimer(DelayedOperation):
    """An action that runs once after a delay, unless it is cancelled."""

    __slots__ = ("_action", "_actions")

    def __init__(
        self, purgatory: DelayedOperationPurgatory, actions: ActionQueue, delay_ms: float, action: Callable[[], object]
    ) -> None:
        super().__init__(delay_ms)
        self._action = action
        self._actions = actions
        purgatory.delay(self)

    def cancel(self) -> None:
        self.force_complete()

    def on_complete(self) -> None:
        pass  # cancelled, or on_expiration follows

    def on_expiration(self) -> None:
        self._action()
        self._actions.complete()
