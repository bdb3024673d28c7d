"""What a Streams runtime fails with, by Kafka's names: what ends a thread, a task, or only an attempt.

StreamsException            the thread dies of it; `task_id`: while it worked on that task
  TaskCorruptedException    ... does not: the tasks are closed as they are, revived, and restored
  TaskMigratedException     ... does not: somebody else has the tasks; it gives them up, and joins anew
ClientTimeoutException      a call of a client took too long: the task is tried again, for `task.timeout.ms`
TopologyException           a topology that cannot work
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sluice.client.errors import KafkaException, TimeoutException


class TaskId(NamedTuple):
    """A task's name: the part of the topology that it runs, and the partition that it runs it on."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


class StreamsException(KafkaException):
    """A thread dies of it."""

    def __init__(self, message: str, task_id: TaskId | None = None) -> None:
        self.task_id = task_id
        super().__init__(message)


class TaskCorruptedException(StreamsException):
    """What tasks have in their stores is not what was committed."""

    def __init__(self, tasks: Iterable[TaskId], reason: str) -> None:
        self.tasks = frozenset(tasks)
        super().__init__(f"task {', '.join(map(str, sorted(self.tasks)))}: {reason}")


class TaskMigratedException(StreamsException):
    """The group has gone on without this member."""


class TopologyException(KafkaException):
    """A topology that cannot work."""


class ClientTimeoutException(TimeoutException):
    """A call of a client took too long. `call`: which."""

    def __init__(self, call: str, cause: TimeoutException) -> None:
        self.call = call
        super().__init__(f"{call}: {cause}")


@contextmanager
def client_call(call: str) -> Iterator[None]:
    """Gives a TimeoutException the name of the call that it comes from."""
    try:
        yield
    except TimeoutException as error:
        raise ClientTimeoutException(call, error) from error
