"""The exceptions of a Streams runtime, with Kafka's names.

StreamsException            ends the thread; `task_id`: the task that failed, if any
  TaskCorruptedException    does not: the tasks are closed without a commit, revived, and restored
  TaskMigratedException     does not: other members have the tasks; the thread closes its tasks and rejoins
ClientTimeoutException      a client call timed out: the task is retried, for `task.timeout.ms`
TopologyException           an invalid topology
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sluice.client.errors import KafkaException, TimeoutException


class TaskId(NamedTuple):
    """The id of a task: its sub-topology and partition."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


class StreamsException(KafkaException):
    """An error that ends the thread, unless it is of a subclass."""

    def __init__(self, message: str, task_id: TaskId | None = None) -> None:
        self.task_id = task_id
        super().__init__(message)


class TaskCorruptedException(StreamsException):
    """Tasks whose stores differ from the committed state."""

    def __init__(self, tasks: Iterable[TaskId], reason: str) -> None:
        self.tasks = frozenset(tasks)
        super().__init__(f"task {', '.join(map(str, sorted(self.tasks)))}: {reason}")


class TaskMigratedException(StreamsException):
    """A member that the group has removed."""


class TopologyException(KafkaException):
    """An invalid topology."""


class ClientTimeoutException(TimeoutException):
    """A timeout of a client call. `call`: its name."""

    def __init__(self, call: str, cause: TimeoutException) -> None:
        self.call = call
        super().__init__(f"{call}: {cause}")


@contextmanager
def client_call(call: str) -> Iterator[None]:
    try:
        yield
    except TimeoutException as error:
        raise ClientTimeoutException(call, error) from error
