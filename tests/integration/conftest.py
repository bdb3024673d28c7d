"""Integration tests use real sockets and processes. Coroutine tests run in a real-time event loop."""

import asyncio
import inspect

import pytest

# Far longer than any of these tests takes on a busy machine: it only ends tests that hang.
LIMIT_S = 60


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test, unless it is marked for pytest-asyncio."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test) or pyfuncitem.get_closest_marker("asyncio"):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    asyncio.run(asyncio.wait_for(test(**arguments), LIMIT_S))
    return True
