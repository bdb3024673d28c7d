"""The loop's selector: a few sockets at a time, each in its turn, and none that is not ready any more."""

import asyncio
from collections.abc import Iterator
from selectors import EVENT_READ, EVENT_WRITE
from socket import socket, socketpair

import pytest

from sluice.broker.network.fair_selector import AT_ONCE, FairSelector

SOCKETS = 2 * AT_ONCE + 5


@pytest.fixture
def selector() -> Iterator[FairSelector]:
    with FairSelector() as made:
        yield made


@pytest.fixture
def readable(selector: FairSelector) -> Iterator[list[socket]]:
    """Sockets that stay ready to be read from."""
    pairs = [socketpair() for _ in range(SOCKETS)]
    for here, there in pairs:
        there.send(b"x")
        selector.register(here, EVENT_READ)
    yield [here for here, _ in pairs]
    for pair in pairs:
        for each in pair:
            each.close()


def found(selector: FairSelector) -> list[int]:
    return [key.fd for key, _ in selector.select(0)]


def test_a_few_at_a_time_and_each_in_its_turn(selector: FairSelector, readable: list[socket]) -> None:
    everyone = {each.fileno() for each in readable}
    for _ in range(2):
        turns = [found(selector) for _ in range(3)]
        assert [len(turn) for turn in turns] == [AT_ONCE, AT_ONCE, 5]
        assert set().union(*turns) == everyone


def test_a_socket_that_is_closed_before_its_turn_is_left_out(selector: FairSelector, readable: list[socket]) -> None:
    first = found(selector)
    gone = next(each for each in readable if each.fileno() not in first)
    number = gone.fileno()
    selector.unregister(gone)
    assert number not in found(selector) + found(selector) + found(selector)


def test_one_that_is_asked_for_something_else_before_its_turn_is_asked_anew(
    selector: FairSelector, readable: list[socket]
) -> None:
    first = found(selector)
    changed = next(each for each in readable if each.fileno() not in first)
    selector.modify(changed, EVENT_WRITE)
    rest = [*selector.select(0), *selector.select(0)]
    assert changed.fileno() not in [key.fd for key, _ in rest], "it was ready for reading, which nobody asks for now"
    again = [each for _ in range(3) for each in selector.select(0)]
    assert [events for key, events in again if key.fd == changed.fileno()] == [EVENT_WRITE]


def test_nothing_ready_is_nothing(selector: FairSelector) -> None:
    assert selector.select(0) == []


def test_a_loop_looks_at_its_timers_between_a_few_sockets() -> None:
    """However many are ready, a timer that is due goes before most of them."""
    loop = asyncio.SelectorEventLoop(FairSelector())
    pairs = [socketpair() for _ in range(SOCKETS)]
    order: list[str] = []

    def read(each: socket) -> None:
        loop.remove_reader(each)
        order.append("socket")
        if order.count("socket") == SOCKETS:
            loop.stop()

    try:
        for here, there in pairs:
            there.send(b"x")
            loop.add_reader(here, read, here)
        loop.call_later(0, order.append, "timer")
        loop.run_forever()
    finally:
        for here, there in pairs:
            loop.remove_reader(here)
            here.close()
            there.close()
        loop.close()
    assert order.index("timer") <= AT_ONCE
