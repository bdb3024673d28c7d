"""A worker for tests of requests that take long."""

from collections.abc import Callable
from typing import TypeVar

from sluice.broker.requests.worker import Worker

T = TypeVar("T")


class HeldWorker(Worker):
    """A worker that works when the test runs it."""

    def __init__(self) -> None:
        self._jobs: list[Callable[[], None]] = []

    def run(self, work: Callable[[], T], done: Callable[[Callable[[], T]], None]) -> None:
        self._jobs.append(lambda: Worker.run(self, work, done))

    def work(self) -> None:
        jobs, self._jobs = self._jobs, []
        for job in jobs:
            job()

    def __len__(self) -> int:
        return len(self._jobs)
