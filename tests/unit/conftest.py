"""Unit tests use virtual time and stay in their process: a real socket, a process or a sleep fails the test.

Tests that need one of these are in tests/integration. Coroutine tests run in a virtual-time event loop.
"""

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from sluice import testing

# https://docs.python.org/3/library/audit_events.html
FORBIDDEN = {
    "socket.bind": "binds a real socket",
    "socket.connect": "connects a real socket",
    "subprocess.Popen": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.fork": "starts a process",
    "time.sleep": "sleeps in real time",
}


class _Guard:
    """An audit hook, which cannot be removed once it is added."""

    def __init__(self) -> None:
        self.is_active = False
        self.violations: list[str] = []

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.is_active and event in FORBIDDEN:
            self.violations.append(f"{FORBIDDEN[event]}: {event}{arguments!r:.200}")


_guard = _Guard()
sys.addaudithook(_guard)


@pytest.fixture(autouse=True)
def in_process_and_virtual_time() -> Iterator[None]:
    """Fail a test that uses a real socket, a process or time.sleep, which may happen in a thread of it."""
    _guard.violations.clear()
    _guard.is_active = True
    yield
    _guard.is_active = False
    assert not _guard.violations, f"{_guard.violations[0]}; move the test to tests/integration"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in virtual time. Its argument `seed`, if any, is the seed of the event loop."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    testing.run(test(**arguments), seed=arguments.get("seed", 0))
    return True
