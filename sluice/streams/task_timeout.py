"""The time that a task may spend without progress: `task.timeout.ms` (KIP-572; that part of Kafka's AbstractTask).

The first TimeoutException of a client sets a deadline. The task is retried in the next iteration. Any progress removes
the deadline. The first timeout after the deadline fails the task:

    deadline    now                 effect of a timeout
    none        any                 deadline = now + task.timeout.ms; retry
    d           now <= d            retry
    d           now > d             StreamsException, which ends the thread

So there is at least one retry, even with `task.timeout.ms=0`: Kafka's tasks fail at the second timeout, at least a
millisecond later. In the KIP, 0 means no retry; `profile="kip"` does that.

Different on purpose: each timeout is logged at WARNING, as the KIP requires; Kafka logs some at ERROR, some at DEBUG.
"""

import logging

from sluice.client.config import Profile
from sluice.client.errors import TimeoutException

from .errors import ClientTimeoutException, StreamsException, TaskId

log = logging.getLogger("sluice.streams")


class TaskTimeout:
    """The deadline of one task, in whole milliseconds, as in Kafka."""

    def __init__(self, task_id: TaskId, timeout_ms: int, profile: Profile) -> None:
        self._task_id = task_id
        self._timeout_ms = timeout_ms
        self._retries_never = profile == "kip" and timeout_ms == 0
        self.deadline_ms: int | None = None

    def timed_out(self, now_ms: int, cause: TimeoutException) -> None:
        if self.deadline_ms is None:
            self.deadline_ms = now_ms + self._timeout_ms
            is_over = self._retries_never
        else:
            is_over = now_ms > self.deadline_ms
        if is_over:
            without_ms = now_ms - self.deadline_ms + self._timeout_ms
            raise StreamsException(
                f"task {self._task_id}: {without_ms} ms without progress (task.timeout.ms={self._timeout_ms}): {cause}",
                self._task_id,
            ) from cause
        call = cause.call if isinstance(cause, ClientTimeoutException) else "a client"
        left_ms = max(0, self.deadline_ms - now_ms)
        log.warning(
            f"task {self._task_id}: timeout of {call}; it will be retried, for {left_ms} ms at least",
            extra={"task": str(self._task_id), "call": call, "error": str(cause)},
        )

    def clear(self) -> None:
        self.deadline_ms = None
