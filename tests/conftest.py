"""What all tests share."""

import pytest

pytest.register_assert_rewrite("tests.support")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bootstrap", help="run the client matrix against this broker (host:port) instead of sluice")
    parser.addoption(
        "--write-table", action="store_true", help="write docs/clients.md from what the client matrix found"
    )
