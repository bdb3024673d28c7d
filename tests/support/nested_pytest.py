"""Runs of pytest within a test, by the plugin pytester.

Pytester removes the modules that a run in this process imported; later imports would create second copies. So this
module imports all that tests use.
"""

import pkgutil
from importlib import import_module
from textwrap import dedent

import pytest

import sluice

for _package in ("broker", "client", "embedded", "explore", "lint", "protocol", "proxy", "quotas", "trace"):
    for _module in pkgutil.walk_packages([f"{sluice.__path__[0]}/{_package}"], f"sluice.{_package}."):
        import_module(_module.name)

# The plugins of this project's own tests, which would slow down the runs.
WITHOUT = [f"-pno:{plugin}" for plugin in ("asyncio", "timeout", "hypothesispytest", "schemathesis")]


def run(pytester: pytest.Pytester, code: str, *arguments: str) -> pytest.RunResult:
    """Run tests in this process, in a file test_shop.py."""
    pytester.makepyfile(test_shop=dedent(code))
    return pytester.runpytest_inprocess(*WITHOUT, *arguments)
