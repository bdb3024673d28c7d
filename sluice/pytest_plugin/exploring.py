"""Tests with `@pytest.mark.kafka_explore`: coroutines that run again and again in virtual time, with failures."""

import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypedDict, cast

import pytest

from sluice.errors import ArgumentError, SluiceError
from sluice.explore import Invariant, Run, explore, replay
from sluice.text.error_text import one_of

_RUN = "kafka_run"


class _Options(TypedDict, total=False):
    runs: int
    invariants: list[Invariant]
    failures: list[str]
    brokers: int
    config: Mapping[str, str | float | bool]
    seed: int
    replay: list[str]
    order: int
    sizes: Mapping[str, int]


def run_explored(item: pytest.Function, mark: pytest.Mark) -> None:
    """Explore or replay a test. Raises the failure of pytest."""
    try:
        options = _options(mark)
        program = _program(item)
        given = options.pop("replay", None)
        if given is not None:
            options.pop("runs", None)
            options.pop("failures", None)
            replay(program, given, **cast("Any", options))
            return
        if "order" in options or "sizes" in options:
            raise ArgumentError(f"{'order' if 'order' in options else 'sizes'}: only with replay")
        set_for_all = {name: item.config.getoption(f"kafka_explore_{name}") for name in ("runs", "jobs")}
        given_for_all = {name: value for name, value in set_for_all.items() if value is not None}
        explore(program, **cast("Any", options | given_for_all))
    except SluiceError as error:
        raise pytest.fail.Exception(f"kafka_explore: {error}", pytrace=False) from None


def _options(mark: pytest.Mark) -> _Options:
    if mark.args:
        raise ArgumentError(f"expected NAME=VALUE, got {mark.args[0]!r}")
    for name in mark.kwargs:
        if name not in _Options.__annotations__:
            raise ArgumentError(one_of(_Options.__annotations__, name))
    return cast("_Options", dict(mark.kwargs))


def _program(item: pytest.Function) -> Callable[[Run], Coroutine[Any, Any, object]]:
    function = inspect.unwrap(item.obj)  # in its auto mode, pytest-asyncio wraps it
    names = inspect.signature(function).parameters
    if not inspect.iscoroutinefunction(function) or _RUN not in names:
        raise ArgumentError(f"expected `async def {item.originalname}({_RUN})`")
    arguments = {name: item.funcargs[name] for name in names}
    return lambda run: function(**{**arguments, _RUN: run})
