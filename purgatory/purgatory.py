"""Where operations wait: each for its time, and those that wait for more under the keys that may complete them.

Follows Kafka's `DelayedOperationPurgatory`. What differs:

- No locks, no shards, no reaper thread: one thread owns all state, and a purge happens when an operation completes.
- All purgatories share one `Timer`. `delay` takes operations that have no key: in Kafka throttled channels wait in a
  queue of their own.
- While more operations wait than the purge interval says, a purge is put off until the completed outnumber the waiting:
  a purge looks at every watched operation, and so costs a constant share of each however many there are.
- An operation that fails is logged, and the others go on.
"""

import logging
from collections.abc import Collection, Hashable

from .operation import DelayedOperation
from .timer import Timer

_logger = logging.getLogger("sluice.purgatory")


class DelayedOperationPurgatory:
    """The operations of one kind. Its length is the number that wait for their time.

    The gauges and counters are plain attributes, for the metrics' collector to read: `delayed`, operations that wait
    (Kafka's NumDelayedOperations); `watched`, entries under all keys (Kafka's PurgatorySize: an operation counts once
    per key, and when completed until it is dropped by a check or a purge); `expirations`, ever.
    """

    def __init__(self, name: str, timer: Timer, purge_interval: int = 1000) -> None:
        """`purge_interval`: completed operations that may linger under keys before they are dropped.

        Kafka's `fetch.purgatory.purge.interval.requests` and `producer.purgatory.purge.interval.requests`, 1000.
        """
        self.name = name
        self.purge_interval = purge_interval
        self.delayed = 0
        self.watched = 0
        self.expirations = 0
        self._timer = timer
        self._watchers: dict[Hashable, list[DelayedOperation]] = {}
        self._lingering = 0  # operations completed since the last purge: an upper bound, as Kafka's estimate is

    def __len__(self) -> int:
        return self.delayed

    def delay(self, operation: DelayedOperation) -> None:
        """Completes an operation when its time has passed; never within this call, even if its delay is 0."""
        assert not operation.completed, f"{operation!r} is completed and cannot wait"
        assert operation._purgatory is None, f"{operation!r} waits already"
        operation._purgatory = self
        self.delayed += 1
        self._timer.add(operation, operation.delay_ms)

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Collection[Hashable]) -> bool:
        """Completes the operation at once if it can be, else watches it under `keys` (one or more) until its time.

        True if this call completed it. It is tried twice, before and after it is put under its keys, so that what
        happens in between is not missed; without threads only its own `try_complete` can make something happen there.
        If `try_complete` raises, the operation is the caller's again and never completes by itself.
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
        """Watches an operation, which was just seen to be far from complete, under `keys` (one or more) until its time.

        It is not tried within this call.
        """
        assert keys, f"{operation!r} has no key, so nothing could complete it: delay it"
        self._watch(operation, keys)
        self.delay(operation)

    def check_and_complete(self, key: Hashable) -> int:
        """Tries every operation under `key`, in the order they came; returns how many it completed."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed_here = 0
        for operation in watchers.copy():  # whatever completes may watch, check and purge under this same key
            if operation.completed:
                continue
            try:
                completed_here += operation.try_complete()
            except Exception:
                _logger.exception("%r failed as it was checked", operation)
                completed_here += operation.completed
        self._drop_completed(key, watchers)
        return completed_here

    def release_completed(self, operation: DelayedOperation) -> None:
        """Lets an operation go before its time; it calls this itself as it completes."""
        self._timer.cancel(operation)
        self.delayed -= 1
        self._count_lingering()

    def release_expired(self) -> None:
        """Lets an operation go that the timer has let go already; it calls this itself as it expires."""
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
            operation.completed = True  # so that its entries are dropped, and nothing completes it later
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
