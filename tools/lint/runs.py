"""Many runs: those in virtual time in processes, the others side by side in one event loop."""

import asyncio
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple, TypeVar

from tools.lint.clients import BY_NAME, CLIENTS
from tools.lint.scene import Run, Scene, play, play_virtually

BESIDE = 6  # runs in real time; they mostly sleep
PROCESSES = 2

T = TypeVar("T")


class Task(NamedTuple):
    """One run."""

    name: str
    client: str
    seed: int
    scene: Scene


def run_all(tasks: Sequence[Task], judge: Callable[[Task, Run], T]) -> Iterator[T]:
    """Yield what `judge` returns of each task and its run, in any order; journals are not kept."""
    virtual = [task for task in tasks if BY_NAME[task.client].virtual]
    if virtual:
        with ProcessPoolExecutor(PROCESSES) as pool:
            yield from pool.map(partial(_virtual, judge), virtual)
    real = [task for task in tasks if not BY_NAME[task.client].virtual]
    if real:
        with asyncio.Runner() as runner:
            results = _real(real, judge)
            while (found := runner.run(_next(results))) is not None:
                yield found


def _virtual(judge: Callable[[Task, Run], T], task: Task) -> T:
    try:
        run = play_virtually(task.scene, BY_NAME[task.client], task.seed)
    except Exception:  # not every exception can pass to another process
        run = Run([], [traceback.format_exc()])
    return judge(task, run)


async def _next(results: AsyncIterator[T]) -> T | None:
    return await anext(results, None)


async def _real(tasks: Sequence[Task], judge: Callable[[Task, Run], T]) -> AsyncIterator[T]:
    places = asyncio.Semaphore(BESIDE)

    async def one(task: Task) -> T:
        async with places:
            return judge(task, await play(task.scene, BY_NAME[task.client]))

    try:
        for each in asyncio.as_completed([one(task) for task in tasks]):
            yield await each
    finally:
        for client in CLIENTS:
            await client.close()
