"""What all tests share."""

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, no more: on a busy one tests failed at the usual 200 ms. What
# hangs is ended by pytest-timeout.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

pytest.register_assert_rewrite("tests.support")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bootstrap", help="run the client matrix against this broker (host:port) instead of sluice")
    parser.addoption("--kills", type=int, help="how often the broker of tests/crash is killed in each run")
    parser.addoption("--week-seed", type=int, help="the one seed of tests/property/test_week_of_failures.py to run")
    parser.addoption("--week-seeds", type=int, help="how many seeds of it to run")
    parser.addoption(
        "--write-table", action="store_true", help="write docs/clients.md from what the client matrix found"
    )
    parser.addoption(
        "--write-fault-table",
        action="store_true",
        help="write docs/faults-clients.md from what tests/clients/test_faults.py found",
    )
