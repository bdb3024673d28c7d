"""The event loop's selector: a limited number of ready sockets per iteration, in turn."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import dup2
from selectors import EVENT_READ, EVENT_WRITE
from socket import socket, socketpair

import pytest

from sluice.broker.network.fair_selector import AT_ONCE, READS_S, FairLoop, FairSelector

from .conftest import SelectorTime

SOCKETS = 2 * AT_ONCE + 5


@pytest.fixture
def selector() -> Iterator[FairSelector]:
    loop = FairLoop()
    yield loop.selector
    loop.close()


@contextmanager
def readable_sockets(count: int) -> Iterator[list[socket]]:
    """Create sockets that stay readable."""
    pairs = [socketpair() for _ in range(count)]
    for _, peer in pairs:
        peer.send(b"x")
    yield [ours for ours, _ in pairs]
    for pair in pairs:
        for sock in pair:
            sock.close()


@pytest.fixture
def readable(selector: FairSelector) -> Iterator[list[socket]]:
    with readable_sockets(SOCKETS) as sockets:
        for sock in sockets:
            selector.register(sock, EVENT_READ)
        yield sockets


def selected(selector: FairSelector) -> list[int]:
    return [key.fd for key, _ in selector.select(0)]


def test_select_returns_a_limited_number_of_sockets_in_turn(selector: FairSelector, readable: list[socket]) -> None:
    all_sockets = {sock.fileno() for sock in readable}
    for _ in range(2):
        batches = [selected(selector) for _ in range(3)]
        assert [len(batch) for batch in batches] == [AT_ONCE, AT_ONCE, 5]
        assert set().union(*batches) == all_sockets


def test_socket_unregistered_before_its_turn_is_not_returned(selector: FairSelector, readable: list[socket]) -> None:
    first = selected(selector)
    removed = next(sock for sock in readable if sock.fileno() not in first)
    descriptor = removed.fileno()
    selector.unregister(removed)
    assert descriptor not in selected(selector) + selected(selector) + selected(selector)


def test_socket_modified_before_its_turn_is_returned_for_its_new_events(
    selector: FairSelector, readable: list[socket]
) -> None:
    first = selected(selector)
    changed = next(sock for sock in readable if sock.fileno() not in first)
    selector.modify(changed, EVENT_WRITE)
    rest = [*selector.select(0), *selector.select(0)]
    assert changed.fileno() not in [key.fd for key, _ in rest], "unregistered events are not reported"
    later = [event for _ in range(3) for event in selector.select(0)]
    assert [events for key, events in later if key.fd == changed.fileno()] == [EVENT_WRITE]


def test_select_without_ready_sockets_returns_nothing(selector: FairSelector) -> None:
    assert selector.select(0) == []


def test_watches_are_called_until_their_time_is_over_and_then_by_the_next_call(selector_time: SelectorTime) -> None:
    loop = FairLoop()
    called: list[int] = []

    def read(descriptor: int) -> None:
        called.append(descriptor)
        selector_time.now_s += READS_S / 3

    loop.call_soon(called.clear)  # so that the selector returns to the loop
    with readable_sockets(7) as sockets:
        for sock in sockets:
            loop.add_reader(sock, read, sock.fileno())
        counts = []
        for _ in range(3):
            assert loop.selector.select(0) == []
            counts.append(len(called))
        assert counts == [3, 6, 7]
        assert len(set(called)) == 7
    loop.close()


def test_due_timer_runs_before_most_ready_sockets(selector_time: SelectorTime, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = FairLoop()
    monkeypatch.setattr(loop, "time", selector_time.read)
    order: list[str] = []

    def read(sock: socket) -> None:
        loop.remove_reader(sock)
        order.append("socket")
        selector_time.now_s += READS_S / 4
        if order.count("socket") == SOCKETS:
            loop.stop()

    with readable_sockets(SOCKETS) as sockets:
        for sock in sockets:
            loop.add_reader(sock, read, sock)
        loop.call_later(0.75 * READS_S, order.append, "timer")
        loop.run_forever()
    loop.close()
    assert order.index("timer") == 4


READERS = {
    "nothing, so the selector polls until no socket is ready": (lambda loop, time: None, 3),
    "schedules a callback": (lambda loop, time: loop.call_soon(time.read), 1),
    "schedules an earlier timer": (lambda loop, time: loop.call_later(4, time.read), 1),
    "schedules a later timer": (lambda loop, time: loop.call_later(6, time.read), 3),
    "takes until a timer is due": (lambda loop, time: setattr(time, "now_s", time.now_s + 2.5), 2),
    "stops the loop": (lambda loop, time: loop.stop(), 1),
}


@pytest.mark.parametrize(("act", "most"), READERS.values(), ids=READERS)
def test_selector_returns_to_the_loop_after_a_reader_that(
    act: Callable[[FairLoop, SelectorTime], object],
    most: int,
    selector_time: SelectorTime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = FairLoop()
    monkeypatch.setattr(loop, "time", selector_time.read)
    loop.call_later(5, selector_time.read)
    reads: list[bytes] = []
    ours, peer = socketpair()

    def read() -> None:
        reads.append(ours.recv(1))
        if len(reads) < 3:
            peer.send(b"x")
        act(loop, selector_time)

    loop.add_reader(ours, read)
    peer.send(b"x")
    # The poll would wait for the timer at 5 s, which this test does not.
    poll = loop.selector.poll
    loop.selector.poll = lambda _: poll(0)
    assert loop.selector.select(None) == []
    assert len(reads) == most
    loop.close()
    ours.close()
    peer.close()


def test_event_of_a_closed_socket_does_not_reach_the_next_one_with_its_number() -> None:
    loop = FairLoop()
    called: list[int] = []
    pairs = [socketpair() for _ in range(4)]
    first, second, opened = [ours for ours, _ in pairs[:3]]

    def read(number: int) -> None:
        called.append(number)
        if len(called) == 1:
            other = second if number == 1 else first
            loop.remove_reader(other)
            dup2(opened.fileno(), other.fileno())
            loop.add_reader(other, called.append, 3)

    loop.add_reader(first, read, 1)
    loop.add_reader(second, read, 2)
    for _, peer in pairs[:2]:
        peer.send(b"x")
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert len(called) == 1
    loop.close()
    for pair in pairs:
        for sock in pair:
            sock.close()


def test_error_of_a_reader_is_reported_and_other_sockets_are_read() -> None:
    loop = FairLoop()
    reported: list[object] = []
    loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))

    def read(sock: socket) -> None:
        assert loop.remove_reader(sock)
        raise ValueError(len(reported))

    with readable_sockets(3) as sockets:
        for sock in sockets:
            loop.add_reader(sock, read, sock)
        loop.call_soon(loop.stop)
        loop.run_forever()
    loop.close()
    assert [str(error) for error in reported] == ["0", "1", "2"]


def test_reader_and_writer_of_one_socket_are_removed_separately() -> None:
    loop = FairLoop()
    called: list[str] = []
    with readable_sockets(1) as (ours,):
        loop.add_reader(ours, called.append, "read")
        loop.add_writer(ours, called.append, "write")
        loop.call_soon(loop.stop)
        loop.run_forever()
        assert called == ["read", "write"]
        assert [loop.remove_reader(ours), loop.remove_reader(ours)] == [True, False]
        loop.call_soon(loop.stop)
        loop.run_forever()
        assert called == ["read", "write", "write"]
        assert [loop.remove_writer(ours), loop.remove_writer(ours)] == [True, False]
    loop.close()
