"""asyncio's handles of callbacks, in fewer Python calls: without tracebacks and reprs for asyncio's debug mode.

The loop creates them by `__new__` and sets their attributes, because `__init__` would be another call for each
callback. A handle without a callback is cancelled.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any


class Handle(asyncio.Handle):
    __slots__ = ()
    _repr = _source_traceback = None
    _callback: Callable[..., object] | None
    _args: Sequence[Any]
    _context: Context

    @property
    def _cancelled(self) -> bool:  # type: ignore[override]  # for asyncio's methods
        return self._callback is None

    def cancel(self) -> None:
        self._callback = None
        self._args = ()


class TimerHandle(asyncio.TimerHandle):
    __slots__ = ()
    _repr = _source_traceback = None
    _callback: Callable[..., object] | None
    _args: Sequence[Any]
    _context: Context
    _loop: asyncio.AbstractEventLoop
    _when: float
    _scheduled: bool

    @property
    def _cancelled(self) -> bool:  # type: ignore[override]  # for asyncio's methods
        return self._callback is None

    def __lt__(self, other: "TimerHandle") -> bool:  # type: ignore[override]  # a loop has timers of one class
        return self._when < other._when

    def cancel(self) -> None:
        if self._callback is not None:
            self._loop._timer_handle_cancelled(self)  # type: ignore[attr-defined]  # of asyncio's BaseEventLoop
            self._callback = None
            self._args = ()
