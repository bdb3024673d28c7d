"""The thread in which a broker lives: what goes wrong there reaches those who ask from elsewhere."""

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
    """Something nobody expected happens in the loop."""

    def fail() -> None:
        raise ZeroDivisionError("nobody expected that")

    assert thread._loop is not None
    thread._loop.call_soon_threadsafe(fail)


def test_what_is_called_runs_in_the_thread() -> None:
    thread = started()
    assert thread.call(lambda: current_thread().name) == "sluice"
    thread.stop()
    assert thread.call(current_thread) is current_thread(), "nobody else is there any more"


def test_what_a_call_raises_is_raised_to_its_caller() -> None:
    thread = started()
    with pytest.raises(ZeroDivisionError):
        thread.call(lambda: 1 // 0)
    thread.stop()
    thread.raise_failure()


def test_what_nobody_expected_is_raised_to_who_asks_next() -> None:
    thread = started()
    fail_in(thread)
    with suppress(SluiceError):  # this call may come before
        thread.call(lambda: None)
    with pytest.raises(SluiceError, match="in the broker's thread: ZeroDivisionError") as raised:
        thread.call(lambda: None)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    thread.stop()


def test_the_thread_does_not_wait_for_itself() -> None:
    thread = started()
    assert thread.call(lambda: thread.call(lambda: 1)) == 1, "a function need not wait"

    async def asked() -> None:
        return None

    with pytest.raises(SluiceError, match="would never return"):
        thread.call(lambda: thread.run(asked))
    thread.stop()


def test_who_waits_when_it_ends_is_not_left_waiting() -> None:
    thread = started()
    waits = Event()
    raised: list[BaseException] = []

    async def forever() -> None:
        waits.set()
        await asyncio.Event().wait()

    def ask() -> None:
        try:
            thread.run(forever)
        except SluiceError as error:
            raised.append(error)

    asking = Thread(target=ask)
    asking.start()
    assert waits.wait(10)
    thread.stop()
    asking.join(10)
    assert [str(error) for error in raised] == ["the broker has stopped"]
    assert thread.has_ended


def test_a_function_for_a_broker_that_is_stopping_is_called_after_its_end() -> None:
    thread = started()
    held, stopping, go_on = Event(), Event(), Event()

    async def holds_up() -> None:
        held.set()
        try:
            await asyncio.Event().wait()
        finally:  # the loop is left, and cancels what is in it
            stopping.set()
            go_on.wait(10)

    def hold_up() -> None:
        with suppress(SluiceError):
            thread.run(holds_up)

    def ask() -> None:
        called.append(thread.call(lambda: thread.has_ended))

    called: list[bool] = []
    others = [Thread(target=hold_up), Thread(target=thread.stop), Thread(target=ask)]
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
