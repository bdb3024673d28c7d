"""The results of the tools, for docs/compatibility/tools.md."""

from typing import Protocol

import pytest

from tools.docs.results.ecosystem import TableWriter


class Record(Protocol):
    def __call__(self, tool: str, version: str, shown: str) -> None:
        """Record a tool, its version, and what the test shows."""


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Record:
    def add(tool: str, version: str, shown: str) -> None:
        request.node.user_properties += [("tool", tool), ("version", version), ("shown", shown)]

    return add


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("write_tools_table") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(TableWriter())
