"""File flushes (fsync) in a separate thread, so that requests do not wait. Callbacks run in the thread of `collect`."""

import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

log = logging.getLogger("sluice.broker")

Action = Callable[[], None]


class Flusher:
    """One thread, started for the first job."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._jobs: deque[tuple[Future[None], Action | None]] = deque()

    def flush(self, handles: Sequence[int], then: Action) -> None:
        """Flush and close files in order; `collect` calls `then` unless the disk fails."""
        self._submit(partial(_flush, handles), then)

    def write(self, action: Action) -> None:
        """Run an action that waits for the disk, after earlier jobs."""
        self._submit(action, None)

    def collect(self) -> bool:
        found = False
        while self._jobs and self._jobs[0][0].done():
            found = self._collect_one() or found
        return found

    def finish(self) -> None:
        while self._jobs:
            self._collect_one()
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None

    def _submit(self, action: Action, then: Action | None) -> None:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "sluice-flusher")
        self._jobs.append((self._executor.submit(action), then))

    def _collect_one(self) -> bool:
        job, then = self._jobs.popleft()
        try:
            job.result()
        except OSError as error:
            # Its records stay after the recovery point: the next start validates them.
            log.error("cannot flush", extra={"reason": error.strerror})
            return False
        if then is not None:
            then()
        return then is not None


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
