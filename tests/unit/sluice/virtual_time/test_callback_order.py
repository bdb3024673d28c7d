"""VirtualLoop's iterations and handles against asyncio's: the same callbacks at the same times, in the same order."""

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

from hypothesis import given
from hypothesis import strategies as st

from sluice.testing import VirtualLoop

_TURN_NS = 1
_LIMIT_S = 1e8
# What a callback does: the kind, and a delay or a number that chooses a handle.
ACTIONS = st.one_of(
    st.tuples(st.just("soon"), st.just(0)),
    st.tuples(st.just("later"), st.sampled_from([0, 1, 1, 2, 50, 50, 100_000])),
    st.tuples(st.just("at"), st.integers(-3, 60)),
    st.tuples(st.just("burst"), st.integers(1, 140)),
    st.tuples(st.just("cancel"), st.integers(0, 300)),
    st.tuples(st.just("cancel many"), st.integers(0, 300)),
    st.tuples(st.just("fail"), st.just(0)),
    st.tuples(st.just("stop"), st.just(0)),
)


class AsyncioLoop(VirtualLoop):
    """The loop with asyncio's methods, and a selector that advances time."""

    call_soon = asyncio.BaseEventLoop.call_soon
    call_at = asyncio.BaseEventLoop.call_at
    call_later = asyncio.BaseEventLoop.call_later
    _run_once: Callable[[], None] = asyncio.BaseEventLoop._run_once  # type: ignore[attr-defined]

    def __init__(self) -> None:
        super().__init__(until=_LIMIT_S)
        self._selector = self
        self._clock_resolution = 1e-9

    def select(self, timeout: float | None) -> list[NoReturn]:
        assert timeout is not None
        if timeout > 0:
            self._now_ns = max(self._now_ns, round((self._now_s + timeout) * 1e9))
        self._now_ns += _TURN_NS
        self._now_s = self._now_ns / 1e9
        return []

    def _process_events(self, events: list[NoReturn]) -> None:
        pass


def trace_of(loop: VirtualLoop, actions: list[tuple[str, int]]) -> list[tuple[object, ...]]:
    """Run the actions, one for each callback, and return the callbacks and errors with their times."""
    trace: list[tuple[object, ...]] = []
    handles: list[asyncio.Handle] = []
    pending = iter(actions)

    def add(make: Callable[..., asyncio.Handle], *when: float) -> None:
        handles.append(make(*when, call, len(handles)))

    def call(number: int) -> None:
        trace.append((number, loop.monotonic_ns()))
        kind, value = next(pending, ("", 0))
        match kind:
            case "soon":
                add(loop.call_soon)
            case "later":
                add(loop.call_later, value)
                add(loop.call_later, value)
            case "at":
                add(loop.call_at, loop.time() + value / 10)
            case "burst":
                for index in range(value):
                    add(loop.call_later, 1 + index % 7)
            case "cancel":
                handles[value % len(handles)].cancel()
            case "cancel many":
                for handle in handles[value % len(handles) :: 2]:
                    handle.cancel()
            case "fail":
                raise ValueError(number)
            case "stop":
                loop.stop()

    def on_error(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        trace.append(("error", context["exception"].args, context["handle"] in handles))

    loop.set_exception_handler(on_error)
    for _ in range(3):
        add(loop.call_soon)
    try:
        for _ in range(2 + sum(kind == "stop" for kind, _ in actions)):
            loop.call_later(200_000, loop.stop)
            loop.run_forever()
            trace.append(("stopped", loop.monotonic_ns(), [handle.cancelled() for handle in handles]))
    finally:
        loop.close()
    return trace


@given(st.lists(ACTIONS, max_size=60))
def test_callbacks_run_as_in_asyncio(actions: list[tuple[str, int]]) -> None:
    assert trace_of(VirtualLoop(until=_LIMIT_S), actions) == trace_of(AsyncioLoop(), actions)


@given(st.lists(ACTIONS, max_size=20))
def test_callbacks_run_the_same_in_debug_mode(actions: list[tuple[str, int]]) -> None:
    debugged = VirtualLoop(until=_LIMIT_S)
    debugged.set_debug(True)
    assert trace_of(debugged, actions) == trace_of(VirtualLoop(until=_LIMIT_S), actions)
