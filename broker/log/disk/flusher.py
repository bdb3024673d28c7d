"""File flushes (fsync) in a separate thread, so that requests do not wait. Callbacks run in the thread of `collect`."""

import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Thread

log = logging.getLogger("sluice.broker")

Action = Callable[[], None]


class Flusher:
    """One thread, started for the first job."""

    def __init__(self) -> None:
        self._todo: SimpleQueue[tuple[Action, Action | None] | None] = SimpleQueue()
        self._done: SimpleQueue[Action | None] = SimpleQueue()
        self._pending = 0
        self._thread: Thread | None = None

    def flush(self, handles: Sequence[int], then: Action) -> None:
        """Flush and close files in order; `collect` calls `then` unless the disk fails."""
        self._submit(partial(_flush, handles), then)

    def write(self, action: Action) -> None:
        """Run an action that waits for the disk, after earlier jobs."""
        self._submit(action, None)

    def collect(self) -> bool:
        found = False
        while not self._done.empty():
            found = self._collect_one() or found
        return found

    def finish(self) -> None:
        while self._pending:
            self._collect_one()
        if self._thread is not None:
            self._todo.put(None)
            self._thread.join()
            self._thread = None

    def _submit(self, action: Action, then: Action | None) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name="sluice-flusher", daemon=True)
            self._thread.start()
        self._pending += 1
        self._todo.put((action, then))

    def _collect_one(self) -> bool:
        action = self._done.get()
        self._pending -= 1
        if action is None:
            return False
        action()
        return True

    def _run(self) -> None:
        while (job := self._todo.get()) is not None:
            action, then = job
            try:
                action()
            except OSError as error:
                # Its records stay after the recovery point: the next start validates them.
                log.error("cannot flush", extra={"reason": error.strerror})
                then = None
            self._done.put(then)


def _flush(handles: Sequence[int]) -> None:
    failure: OSError | None = None
    for handle in handles:
        try:
            os.fsync(handle)
        except OSError as error:
            failure = error
        finally:
            os.close(handle)
    if failure is not None:
        raise failure
