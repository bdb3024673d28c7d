"""asyncio's handles of callbacks, in fewer Python calls: without tracebacks and reprs for asyncio's debug mode.

Both constructors set the same attributes: a shared one would be another call for each callback.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from typing import Any


class Handle(asyncio.Handle):
    __slots__ = ()
    _repr = _source_traceback = None
    _context: Context

    def __init__(
        self,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = None
        self._args = ()


class TimerHandle(asyncio.TimerHandle):
    __slots__ = ()
    _repr = _source_traceback = None
    _context: Context
    _when: float
    _scheduled: bool

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self._cancelled = False
        self._when = when
        self._scheduled = True

    def __lt__(self, other: "TimerHandle") -> bool:  # type: ignore[override]  # a loop has timers of one class
        return self._when < other._when

    def cancel(self) -> None:
        if not self._cancelled:
            self._loop._timer_handle_cancelled(self)  # type: ignore[attr-defined]  # of asyncio's BaseEventLoop
            self._cancelled = True
            self._callback = None
            self._args = ()
