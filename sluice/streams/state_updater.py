"""Restores tasks in a separate asyncio task, beside processing (Kafka's DefaultStateUpdater)."""

import asyncio
import logging

from .changelog import ChangelogReader
from .errors import StreamsException, TaskCorruptedException, TaskId
from .task import StreamTask

log = logging.getLogger("sluice.streams")


class StateUpdater:
    def __init__(self, reader: ChangelogReader) -> None:
        self._reader = reader
        self._tasks: dict[TaskId, StreamTask] = {}
        self._restored: list[StreamTask] = []
        self._failures: list[StreamsException] = []
        self._has_work = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "StateUpdater":
        self._running = asyncio.ensure_future(self._run())
        return self

    async def __aexit__(self, *_exception: object) -> None:
        assert self._running is not None, "not entered"
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    def add(self, task: StreamTask) -> None:
        self._reader.register(task)
        self._tasks[task.id] = task
        self._has_work.set()

    def remove(self, task: StreamTask) -> None:
        if self._tasks.pop(task.id, None) is not None:
            self._reader.unregister(task)
        self._restored = [one for one in self._restored if one is not task]

    def take_restored(self) -> list[StreamTask]:
        restored, self._restored = self._restored, []
        return restored

    def raise_failure(self) -> None:
        if self._failures:
            raise self._failures.pop(0)
        if self._running is not None and self._running.done():
            self._running.result()  # raises: only an internal error ends the loop

    async def _run(self) -> None:
        while True:
            await self._has_work.wait()
            try:
                await self._reader.restore()
            except StreamsException as error:
                self._failed(error)
            for task in list(self._tasks.values()):
                if self._reader.is_restored(task):
                    self.remove(task)
                    self._restored.append(task)
            if not self._tasks:
                self._has_work.clear()

    def _failed(self, error: StreamsException) -> None:
        """Stop restoring the error's tasks, or all tasks if it names none."""
        self._failures.append(error)
        ids = error.tasks if isinstance(error, TaskCorruptedException) else {error.task_id}
        for task in list(self._tasks.values()):
            if task.id in ids or ids == {None}:
                self.remove(task)
