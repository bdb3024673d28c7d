"""How long a task may go without progress when a client's calls take too long: `task.timeout.ms` (KIP-572; the part of
Kafka's AbstractTask that is about it).

Theory of operation. There is no deadline while a task gets on, however slowly. The first TimeoutException of a client
sets it, `task.timeout.ms` from then; the task is left alone for now, and tried again in the next turn. Progress of any
kind forgets it. What times out after the deadline, and not before, is the last attempt:

    deadline    now                 what a timeout does
    none        any                 deadline = now + task.timeout.ms; again
    d           now <= d            again
    d           now > d             StreamsException: the thread dies

So there is at least one more attempt, with `task.timeout.ms=0` too: Kafka's tasks fail at the second timeout, a
millisecond later at the earliest. The KIP says that 0 means no other attempt, and so does `profile="kip"`.

Different on purpose: each timeout is told by a WARNING, as the KIP asks for; Kafka tells some at ERROR, some at DEBUG.
"""

import logging

from sluice.client.config import Profile
from sluice.client.errors import TimeoutException

from .errors import ClientTimeoutException, StreamsException, TaskId

log = logging.getLogger("sluice.streams")


class TaskTimeout:
    """Of one task. Times are whole milliseconds, as Kafka's are: two timeouts of one millisecond are one."""

    def __init__(self, task_id: TaskId, timeout_ms: int, profile: Profile) -> None:
        self._task_id = task_id
        self._timeout_ms = timeout_ms
        self._retries_never = profile == "kip" and timeout_ms == 0
        self.deadline_ms: int | None = None

    def timed_out(self, now_ms: int, cause: TimeoutException) -> None:
        """Sets the deadline, or raises StreamsException when it is over."""
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
        """There was progress."""
        self.deadline_ms = None
