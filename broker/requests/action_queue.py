"""Completions that wait until the responses of the current read have been sent. Follows Kafka's ActionQueue.

A request that appends may make a parked fetch complete. Its own response goes out first: what it made possible is
deferred here, and completed when its connection has no further request to handle.
"""

from collections.abc import Hashable
from typing import Protocol


class Completable(Protocol):
    """Anything that waits under keys: a purgatory, or responses that are ready to be sent."""

    def check_and_complete(self, key: Hashable) -> int:
        """Complete what can be completed under `key`; return how many that were."""


class ActionQueue:
    """The deferred completions of all brokers: a request to one of them may complete what waits at another."""

    def __init__(self) -> None:
        self._deferred: dict[tuple[Completable, Hashable], None] = {}
        self._completing = False

    def defer(self, waiting: Completable, key: Hashable) -> None:
        """Check what waits under `key` later, once."""
        self._deferred[waiting, key] = None

    def complete(self) -> None:
        """Complete what can be completed now, and what that makes possible in turn."""
        if self._completing:
            return
        self._completing = True
        try:
            while self._deferred:
                (waiting, key), _ = self._deferred.popitem()
                waiting.check_and_complete(key)
        finally:
            self._completing = False
