"""The purgatory: operations that wait for their deadline, and for events under the keys that may complete them.

Follows Kafka's `DelayedOperationPurgatory`. Different on purpose:

- One thread owns all state: no locks, shards or reaper thread. A purge runs when an operation completes.
- `delay` accepts operations without keys; Kafka has a separate queue for those.
- If more operations are delayed than the purge interval, a purge runs only after the completed ones outnumber them.
  Since a purge visits every watched operation, this keeps its cost per operation constant.
- If an operation fails, the error is logged and the others continue.
"""

import logging
from collections.abc import Collection, Hashable

from .operation import DelayedOperation
from .timer import Timer

_logger = logging.getLogger("sluice.purgatory")


class DelayedOperationPurgatory:
    """The delayed operations of one kind; its length is their number.

    Metrics read these attributes:

    - `delayed`: operations that wait for their deadline (Kafka's NumDelayedOperations).
    - `watched`: entries under all keys (Kafka's PurgatorySize). An operation counts once per key, and a completed one
      until a check or purge drops it.
    - `expirations`: operations expired since the start.
    """

    def __init__(self, name: str, timer: Timer, purge_interval: int = 1000) -> None:
        """Create an empty purgatory; `name` is for metrics.

        `purge_interval`: completed operations that may stay under keys, `fetch.purgatory.purge.interval.requests`.
        """
        self.name = name
        self.purge_interval = purge_interval
        self.delayed = 0
        self.watched = 0
        self.expirations = 0
        self._timer = timer
        self._watchers: dict[Hashable, list[DelayedOperation]] = {}
        self._lingering = 0  # operations completed since the last purge; an upper bound, like Kafka's estimate

    def __len__(self) -> int:
        return self.delayed

    def delay(self, operation: DelayedOperation) -> None:
        """Complete an operation at its deadline; never within this call, even if its delay is 0."""
        assert not operation.completed, f"{operation!r} is already completed"
        assert operation._purgatory is None, f"{operation!r} is already delayed"
        operation._purgatory = self
        self.delayed += 1
        self._timer.add(operation, operation.delay_ms)

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Collection[Hashable]) -> bool:
        """Complete the operation now if possible, else watch it under `keys` (one or more) until its deadline.

        Returns True if this call completed it. As in Kafka, the operation is tried before and after it is added to its
        keys, so that no event in between is missed.
        """
        assert keys, f"{operation!r} has no key, so nothing could complete it: delay it"
        if operation.try_complete():
            return True
        self._watch(operation, keys)
        completed_here = self._try_again(operation)
        if operation.completed:
            self._count_lingering()
        else:
            self.delay(operation)
        return completed_here

    def watch(self, operation: DelayedOperation, keys: Collection[Hashable]) -> None:
        """Watch an operation, which the caller has just found incomplete, under `keys` until its deadline."""
        assert keys, f"{operation!r} has no key, so nothing could complete it: delay it"
        self._watch(operation, keys)
        self.delay(operation)

    def check_and_complete(self, key: Hashable) -> int:
        """Try every operation under `key`, in the order of arrival; return how many were completed."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed_here = 0
        for operation in watchers.copy():  # a completed operation may watch, check and purge under this key
            if operation.completed:
                continue
            try:
                completed_here += operation.try_complete()
            except Exception:
                _logger.exception("%r failed in a check", operation)
                completed_here += operation.completed
        self._drop_completed(key, watchers)
        return completed_here

    def release_completed(self, operation: DelayedOperation) -> None:
        self._timer.cancel(operation)
        self.delayed -= 1
        self._count_lingering()

    def release_expired(self) -> None:
        self.expirations += 1
        self.delayed -= 1
        self._count_lingering()

    def _watch(self, operation: DelayedOperation, keys: Collection[Hashable]) -> None:
        for key in keys:
            watchers = self._watchers.get(key)
            if watchers is None:
                self._watchers[key] = [operation]
            else:
                watchers.append(operation)
        self.watched += len(keys)

    def _try_again(self, operation: DelayedOperation) -> bool:
        try:
            return operation.try_complete()
        except BaseException:
            operation.completed = True  # so that a check drops its entries
            self._count_lingering()
            raise

    def _count_lingering(self) -> None:
        self._lingering += 1
        if self._lingering > self.purge_interval and self._lingering > self.delayed:
            self._purge()

    def _purge(self) -> None:
        self._lingering = 0
        for key, watchers in list(self._watchers.items()):
            self._drop_completed(key, watchers)

    def _drop_completed(self, key: Hashable, watchers: list[DelayedOperation]) -> None:
        waiting = [operation for operation in watchers if not operation.completed]
        self.watched -= len(watchers) - len(waiting)
        watchers[:] = waiting
        if not waiting and self._watchers.get(key) is watchers:
            del self._watchers[key]
