"""Completions deferred until the responses of the current read are sent: Kafka's ActionQueue.

A request that appends may complete a parked fetch. The completion waits here until the connection of the append has no
further request to handle.
"""

from collections.abc import Hashable
from typing import Protocol


class Completable(Protocol):
    def check_and_complete(self, key: Hashable) -> int:
        """Complete what can be completed under `key`; return how many were."""


class ActionQueue:
    """The deferred completions of all brokers, since a request to one may complete operations at another."""

    def __init__(self) -> None:
        self.deferred: dict[tuple[Completable, Hashable], None] = {}
        self._completing = False

    def defer(self, waiting: Completable, key: Hashable) -> None:
        self.deferred[waiting, key] = None

    def complete(self) -> None:
        """Complete deferred operations, and those that become possible."""
        if self._completing or not self.deferred:
            return
        self._completing = True
        try:
            while self.deferred:
                (waiting, key), _ = self.deferred.popitem()
                waiting.check_and_complete(key)
        finally:
            self._completing = False
