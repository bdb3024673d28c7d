"""The broker's event-loop thread: its errors reach callers in other threads."""

import asyncio
from contextlib import suppress
from threading import Event, Thread, current_thread

import pytest

from sluice.embedded.broker import Broker
from sluice.embedded.loop_thread import BrokerThread
from sluice.errors import SluiceError


def started() -> BrokerThread:
    thread = BrokerThread(Broker())
    thread.start()
    return thread


def fail_in(thread: BrokerThread) -> None:
    def fail() -> None:
        raise ZeroDivisionError("an unexpected error")

    assert thread._loop is not None
    thread._loop.call_soon_threadsafe(fail)


def test_calls_run_in_the_thread() -> None:
    thread = started()
    assert thread.call(lambda: current_thread().name) == "sluice"
    thread.stop()
    assert thread.call(current_thread) is current_thread(), "no other thread is left"


def test_error_of_a_call_is_raised_to_its_caller() -> None:
    thread = started()
    with pytest.raises(ZeroDivisionError):
        thread.call(lambda: 1 // 0)
    thread.stop()
    thread.raise_failure()


def test_unexpected_error_is_raised_by_the_next_call() -> None:
    thread = started()
    fail_in(thread)
    with suppress(SluiceError):  # this call may run before the error
        thread.call(lambda: None)
    with pytest.raises(SluiceError, match="in the broker's thread: ZeroDivisionError") as raised:
        thread.call(lambda: None)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    thread.stop()


def test_thread_does_not_wait_for_itself() -> None:
    thread = started()
    assert thread.call(lambda: thread.call(lambda: 1)) == 1, "a plain function need not wait"

    async def waits() -> None:
        return None

    with pytest.raises(SluiceError, match="would never return"):
        thread.call(lambda: thread.run(waits))
    thread.stop()


def test_waiting_caller_is_released_when_the_thread_ends() -> None:
    thread = started()
    waits = Event()
    raised: list[BaseException] = []

    async def forever() -> None:
        waits.set()
        await asyncio.Event().wait()

    def run() -> None:
        try:
            thread.run(forever)
        except SluiceError as error:
            raised.append(error)

    runner = Thread(target=run)
    runner.start()
    assert waits.wait(10)
    thread.stop()
    runner.join(10)
    assert [str(error) for error in raised] == ["the broker has stopped"]
    assert thread.has_ended


def test_function_call_during_shutdown_runs_after_the_end() -> None:
    thread = started()
    held, stopping, go_on = Event(), Event(), Event()

    async def holds_up() -> None:
        held.set()
        try:
            await asyncio.Event().wait()
        finally:  # the loop has ended and cancels its tasks
            stopping.set()
            go_on.wait(10)

    def hold_up() -> None:
        with suppress(SluiceError):
            thread.run(holds_up)

    def run() -> None:
        called.append(thread.call(lambda: thread.has_ended))

    called: list[bool] = []
    others = [Thread(target=hold_up), Thread(target=thread.stop), Thread(target=run)]
    others[0].start()
    assert held.wait(10)
    others[1].start()
    assert stopping.wait(10)
    others[2].start()
    others[2].join(0.05)
    assert called == []
    go_on.set()
    for other in others:
        other.join(10)
    assert called == [True]
