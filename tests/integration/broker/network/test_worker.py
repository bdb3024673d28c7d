"""Long work in a thread beside a real event loop."""

import asyncio
import sys
import threading

import pytest

from sluice.broker.requests.worker import ThreadWorker


@pytest.fixture
def switch_interval_s() -> float:
    return sys.getswitchinterval()


async def test_work_runs_in_a_thread_and_its_result_arrives_on_the_event_loop(switch_interval_s: float) -> None:
    loop = asyncio.get_running_loop()
    worker = ThreadWorker(loop.call_soon_threadsafe)
    proceed = threading.Event()
    result: asyncio.Future[tuple[threading.Thread, float]] = loop.create_future()

    def work() -> tuple[threading.Thread, float]:
        proceed.wait()
        return threading.current_thread(), sys.getswitchinterval()

    worker.run(work, lambda outcome: result.set_result(outcome()))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not result.done(), "the event loop does not wait for the work"
    proceed.set()
    thread, interval_s = await result
    assert thread is not threading.current_thread()
    assert interval_s < switch_interval_s
    worker.close()
    await asyncio.to_thread(thread.join)
    assert sys.getswitchinterval() == switch_interval_s


async def test_error_of_work_is_raised_by_its_outcome_and_later_work_runs() -> None:
    loop = asyncio.get_running_loop()
    worker = ThreadWorker(loop.call_soon_threadsafe)
    outcomes: asyncio.Queue[object] = asyncio.Queue()
    worker.run(lambda: 1 // 0, outcomes.put_nowait)
    worker.run(lambda: 2, outcomes.put_nowait)
    first, second = await outcomes.get(), await outcomes.get()
    assert callable(first)
    assert callable(second)
    with pytest.raises(ZeroDivisionError):
        first()
    assert second() == 2
    worker.close()


def test_work_that_outlives_its_event_loop_is_dropped() -> None:
    loop = asyncio.new_event_loop()
    worker = ThreadWorker(loop.call_soon_threadsafe)
    proceed = threading.Event()
    threads: list[threading.Thread] = []

    def work() -> None:
        threads.append(threading.current_thread())
        proceed.wait()

    worker.run(work, lambda outcome: outcome())
    worker.close()
    loop.close()
    proceed.set()
    while not threads:
        threading.Event().wait(0.001)
    threads[0].join()
