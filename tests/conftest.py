"""Options and fixtures of all tests."""

import logging
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

# The duration of an example depends on the load of the machine: the default deadline of 200 ms failed tests on a busy
# one. pytest-timeout ends tests that hang.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

pytest.register_assert_rewrite("tests.support")

from tests.support import failure_report  # noqa: E402  (after the registration)

failure_report.note_brokers()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--api-examples", type=int, help="number of requests of each kind in tests/property/test_admin_api.py"
    )
    parser.addoption("--bootstrap", help="run the client matrix against this broker (host:port) instead of sluice")
    parser.addoption("--kills", type=int, help="number of kills per run in tests/crash")
    parser.addoption(
        "--quick-starts", action="store_true", help="run the quick starts in other languages (downloads packages)"
    )
    parser.addoption("--week-seed", type=int, help="run only this seed of tests/property/test_week_of_failures.py")
    parser.addoption("--week-seeds", type=int, help="number of seeds of it to run")
    parser.addoption("--audit-seeds", type=int, help="number of seeds of tests/property/test_audit_verdicts.py to run")
    parser.addoption(
        "--write-table", action="store_true", help="write docs/clients.md from what the client matrix found"
    )
    parser.addoption(
        "--write-fault-table",
        action="store_true",
        help="write docs/faults-clients.md from what tests/clients/test_faults.py found",
    )


@pytest.hookimpl(tryfirst=True)  # before Hypothesis reads it
def pytest_configure(config: pytest.Config) -> None:
    failure_report.choose_seed(config)


@pytest.hookimpl(tryfirst=True)  # before the fixtures, which start brokers
def pytest_runtest_setup() -> None:
    failure_report.begin_test()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections += failure_report.sections(item)
    return report


@pytest.fixture(autouse=True)
def levels_of_loggers() -> Iterator[None]:
    """Restore logger levels, which commands that run in this process change."""
    loggers = [logging.getLogger(name) for name in ("", "sluice", "uvicorn")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
