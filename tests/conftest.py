"""What all tests share."""

import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, no more: on a busy one tests failed at the usual 200 ms. What
# hangs is ended by pytest-timeout.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

pytest.register_assert_rewrite("tests.support")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--api-examples", type=int, help="how often tests/property/test_admin_api.py asks in each way")
    parser.addoption("--bootstrap", help="run the client matrix against this broker (host:port) instead of sluice")
    parser.addoption("--kills", type=int, help="how often the broker of tests/crash is killed in each run")
    parser.addoption(
        "--quick-starts", action="store_true", help="run the quick starts in other languages (downloads packages)"
    )
    parser.addoption("--week-seed", type=int, help="the one seed of tests/property/test_week_of_failures.py to run")
    parser.addoption("--week-seeds", type=int, help="how many seeds of it to run")
    parser.addoption("--audit-seeds", type=int, help="how many seeds of tests/property/test_audit_verdicts.py to run")
    parser.addoption(
        "--write-table", action="store_true", help="write docs/clients.md from what the client matrix found"
    )
    parser.addoption(
        "--write-fault-table",
        action="store_true",
        help="write docs/faults-clients.md from what tests/clients/test_faults.py found",
    )


@pytest.fixture(autouse=True)
def levels_of_loggers() -> Iterator[None]:
    """A command that a test runs in this process sets them for the tests after it as well."""
    loggers = [logging.getLogger(name) for name in ("", "sluice", "uvicorn")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
