"""Unit tests use virtual time and stay in their process: a real socket, a process or a sleep fails the test.

Tests that need one of these are in tests/integration. Coroutine tests run in a virtual-time event loop.
"""

import inspect
import os
import sys
import threading
from collections.abc import Generator
from functools import cache
from typing import Any

import pytest

from sluice import testing
from sluice.broker.security.sasl import scram_credentials

# https://docs.python.org/3/library/audit_events.html
FORBIDDEN = {
    "socket.bind": "binds a real socket",
    "socket.connect": "connects a real socket",
    "subprocess.Popen": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.fork": "starts a process",
    "time.sleep": "sleeps in real time",
}


# A flush only checks its file descriptor: no test of one process can see what a power failure would leave.
os.fsync = os.fdatasync = os.fstat  # type: ignore[assignment]  # callers ignore the result
# Each broker with SASL derives the keys of the same passwords, with the salts of the same seed.
scram_credentials.credential_of = cache(scram_credentials.credential_of)

_violations: list[str] = []
_flushers_before = set[threading.Thread]()


def _flushers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "sluice-flusher"}


def _note_violation(event: str, arguments: tuple[object, ...]) -> None:
    if event in FORBIDDEN:
        _violations.append(f"{FORBIDDEN[event]}: {event}{arguments!r:.200}")


sys.addaudithook(_note_violation)  # cannot be removed


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    _violations.clear()
    _flushers_before.clear()
    _flushers_before.update(_flushers())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """Fail a test that used a real socket, a process or time.sleep, or whose flushes may go on in the next test."""
    result = yield
    assert not _violations, f"{_violations[0]}; move the test to tests/integration"
    assert _flushers() <= _flushers_before, "a flusher goes on; close the log directory"
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in virtual time. Its argument `seed`, if any, is the seed of the event loop."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    testing.run(test(**arguments), seed=arguments.get("seed", 0))
    return True
