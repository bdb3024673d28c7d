"""Typed delegation from another thread to an object in the broker's thread.

    class SyncScenario(Blocking[LocalScenario]):
        steps = reads(LocalScenario.steps)
        wait = waits(LocalScenario.wait)
        stop = calls(LocalScenario.stop)

ParamSpec keeps the signature of each method for type checkers, `wraps` for `inspect` and `help`.
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from .broker import Broker
from .loop_thread import BrokerThread

_T = TypeVar("_T")
_R = TypeVar("_R")
_R_co = TypeVar("_R_co", covariant=True)
_P = ParamSpec("_P")
_BrokerT = TypeVar("_BrokerT", bound=Broker)
_HandleT = TypeVar("_HandleT")


class Blocking(Generic[_T]):
    def __init__(self, target: _T, thread: BrokerThread) -> None:
        self._target = target
        self._thread = thread


class _Read(Protocol[_T, _R_co]):
    def __get__(self, handle: Blocking[_T], owner: type | None = None) -> _R_co: ...


def reads(of: Callable[[_T], _R]) -> _Read[_T, _R]:
    target: object = of
    assert isinstance(target, property)
    assert target.fget is not None
    return property(calls(target.fget))


def calls(method: Callable[Concatenate[_T, _P], _R]) -> Callable[Concatenate[Blocking[_T], _P], _R]:
    return opens(lambda result, _: result, method)


def waits(method: Callable[Concatenate[_T, _P], Awaitable[_R]]) -> Callable[Concatenate[Blocking[_T], _P], _R]:
    @wraps(method)
    def blocking(handle: Blocking[_T], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return handle._thread.run(lambda: method(handle._target, *args, **kwargs))

    return blocking


def opens(
    kind: Callable[[_R, BrokerThread], _HandleT], method: Callable[Concatenate[_T, _P], _R]
) -> Callable[Concatenate[Blocking[_T], _P], _HandleT]:
    """Return a method that calls this one in the broker's thread and returns a blocking handle of the result."""

    @wraps(method)
    def blocking(handle: Blocking[_T], /, *args: _P.args, **kwargs: _P.kwargs) -> _HandleT:
        thread = handle._thread
        return kind(thread.call(lambda: method(handle._target, *args, **kwargs)), thread)

    return blocking


def runs(kind: Callable[_P, _BrokerT]) -> Callable[[object], Callable[Concatenate[Blocking[Any], _P], None]]:
    """Replace an `__init__` by one with the arguments of a kind of broker, which creates the broker and its thread."""

    def replaced(_: object) -> Callable[Concatenate[Blocking[Any], _P], None]:
        @wraps(kind.__init__)
        def init(handle: Blocking[Any], /, *args: _P.args, **kwargs: _P.kwargs) -> None:
            broker = kind(*args, **kwargs)
            Blocking.__init__(handle, broker, BrokerThread(broker))

        return init

    return replaced
