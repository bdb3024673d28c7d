"""An event loop in virtual time that can pause and kill hosts, as an operating system does with processes.

What becomes due on a paused host waits, in order. Other hosts and the network continue.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextvars import Context
from heapq import heapify, heappush
from random import Random  # noqa: TID251  (only the type of an injected object)
from typing import Any, TypeVar, TypeVarTuple, Unpack

from sluice.virtual_time.event_loop import VirtualLoop, VirtualTask
from sluice.virtual_time.handles import Handle, TimerHandle
from sluice.virtual_time.network import HOST

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# The largest delay of a timer in another order: that of a busy process.
_TOLERANCE_S = 0.005


class HostTask(VirtualTask[T]):
    """A task that knows its host."""

    host = ""


class ProcessLoop(VirtualLoop):
    def __init__(self, *, seed: int, until: float, max_turns: int) -> None:
        super().__init__(seed=seed, until=until, max_turns=max_turns)
        self._paused: dict[str, list[Handle | TimerHandle]] = {}
        self._killed: set[str] = set()
        self._varied: Random | None = None
        self._preemptions: list[tuple[int, float]] = []
        self._steps = 0

    def vary(self, random: Random, preemptions: Sequence[tuple[int, float]]) -> None:
        """Delay timers at random, and preempt hosts: at these steps of hosts, for so many seconds."""
        self._varied = random
        self._preemptions = sorted(preemptions, reverse=True)
        self._add_timer = self._add_late_timer  # type: ignore[method-assign]
        self._watch()

    def is_paused(self, host: str) -> bool:
        return host in self._paused

    def kill(self, host: str) -> None:
        """Run no callback of a host until the end of the run."""
        self.pause(host)
        self._killed.add(host)

    def pause(self, host: str) -> None:
        """Run no callback of a host until `resume`."""
        if host in self._paused:
            return
        waiting = self._paused[host] = []
        self._watch()
        # The loop has counted those that are ready: they stay, without a callback.
        waiting += [_moved(handle) for handle in self._ready if _is_of(handle, host)]
        timers = [timer for timer in self._scheduled if _is_of(timer, host)]
        for timer in timers:
            timer._scheduled = False
        self._scheduled[:] = [timer for timer in self._scheduled if timer._scheduled]
        heapify(self._scheduled)
        waiting += sorted(timers)

    def resume(self, host: str) -> bool:
        """Run what has waited on a paused host; return False for one that was killed."""
        if host in self._killed:
            return False
        waiting = self._paused.pop(host, [])
        self._watch()
        for handle in waiting:
            if not isinstance(handle, TimerHandle):
                self._ready.append(handle)
            elif handle._callback is not None:
                handle._scheduled = True
                heappush(self._scheduled, handle)
        return True

    def resume_all(self) -> None:
        """Resume killed hosts, too: their tasks must end with the loop."""
        self._killed.clear()
        self._preemptions.clear()
        for host in [*self._paused]:
            self.resume(host)

    def create_task(self, coro: Generator[Any, None, T] | Coroutine[Any, Any, T], **options: Any) -> asyncio.Task[T]:
        task = HostTask(coro, loop=self, **options)
        task.host = HOST.get()
        return task

    def _watch(self) -> None:
        """Watch callbacks while a host is paused, or will be preempted; otherwise they cost no other call."""
        if self._paused or self._preemptions:
            self.call_soon = self._call_soon_watched  # type: ignore[method-assign]
        else:
            vars(self).pop("call_soon", None)

    def _call_soon_watched(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> Handle:
        handle = super().call_soon(callback, *args, context=context)
        assert isinstance(handle, Handle)
        if self._paused:
            waiting = self._paused.get(_host_of(handle))
            if waiting is not None:
                waiting.append(self._ready.pop())
        elif self._preemptions:
            self._preempt(_host_of(handle))
        return handle

    def _preempt(self, host: str) -> None:
        if not host:
            return
        self._steps += 1
        if self._steps >= self._preemptions[-1][0]:
            _, duration_s = self._preemptions.pop()
            self.pause(host)
            self.call_later(duration_s, self.resume, host, context=Context())

    def _add_late_timer(
        self, when: float, callback: Callable[..., object], args: Sequence[Any], context: Context | None
    ) -> TimerHandle:
        assert self._varied is not None
        return super()._add_timer(when + self._varied.uniform(0, _TOLERANCE_S), callback, args, context)


def _is_of(handle: Handle | TimerHandle, host: str) -> bool:
    return handle._callback is not None and _host_of(handle) == host


def _host_of(handle: Handle | TimerHandle) -> str:
    return handle._context.get(HOST, "")


def _moved(handle: Handle | TimerHandle) -> Handle:
    """Return a handle with the callback of another one, which has none then."""
    moved = Handle.__new__(Handle)
    moved._callback, moved._args, moved._context = handle._callback, handle._args, handle._context
    handle._callback, handle._args = None, ()
    return moved
