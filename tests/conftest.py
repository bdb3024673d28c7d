"""Options and fixtures of all tests."""

import gc
import json
import logging
import signal
from collections.abc import Generator
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The duration of an example depends on the load of the machine: the default deadline of 200 ms failed tests on a busy
# one. pytest-timeout ends tests that hang.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
# The usual 100 examples of each property take a quarter of the processor time of the unit tests. `make check` and
# `make test` run a quarter of them, and the campaign `stress` all.
settings.register_profile("few", max_examples=25)

pytest.register_assert_rewrite("tests.support")

from tests.support import failure_report, lanes, skips  # noqa: E402  (after the registration)

failure_report.note_brokers()

# A shell's background job ignores SIGINT, and so would the programs that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--api-examples", type=int, help="number of requests of each kind in tests/property/test_admin_api.py"
    )
    parser.addoption("--bootstrap", help="run the client matrix against this broker (host:port) instead of sluice")
    parser.addoption("--client-audits", action="store_true", help="build clients in other languages and audit them")
    parser.addoption(
        "--fuzz-factor", type=int, help="multiply the number of random inputs of tests/integration/tools/test_fuzz.py"
    )
    parser.addoption("--history-seed", type=int, help="run only this seed of the histories")
    parser.addoption("--history-seeds", type=int, help="number of seeds of the histories to run")
    parser.addoption("--kills", type=int, help="number of kills per run of test_crash.py")
    parser.addoption(
        "--quick-starts", action="store_true", help="run the quick starts in other languages (downloads packages)"
    )
    parser.addoption("--soak-hours", type=float, help="hours of virtual time of the soak")
    parser.addoption("--soak-minutes", type=float, help="minutes of real time of the soak")
    parser.addoption("--week-seed", type=int, help="run only this seed of tests/property/test_week_of_failures.py")
    parser.addoption("--week-seeds", type=int, help="number of seeds of it to run")
    parser.addoption("--plan-seed", type=int, help="the one workload of test_throttled_demand to run")
    parser.addoption("--plan-seeds", type=int, help="number of seeds of it to run")
    parser.addoption("--audit-seeds", type=int, help="number of seeds of tests/property/test_audit_verdicts.py to run")
    parser.addoption(
        "--write-table", action="store_true", help="write docs/clients.md from what the client matrix found"
    )
    parser.addoption(
        "--write-fault-table",
        action="store_true",
        help="write docs/faults-clients.md from what tests/clients/test_faults.py found",
    )
    parser.addoption("--order-seed", type=int, help="run the tests in a random order that depends on this number")
    parser.addoption(
        "--lanes", type=int, help="number of processes, which share one collection (tests/support/lanes.py)"
    )
    parser.addoption("--zipapp", help="file of tests/integration/sluice/test_zipapp.py")
    parser.addoption(
        "--write-tools-table",
        action="store_true",
        help="write docs/compatibility/tools.md from what tests/ecosystem found",
    )
    parser.addoption("--outcomes", help="write the outcomes as JSON to this file (tools/run_tests.py)")


def pytest_report_header(config: pytest.Config) -> list[str]:
    seed = config.getoption("order_seed")
    return [] if seed is None else [f"random order: repeat it with --order-seed {seed}"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collections, and exclude the collected tests from later ones, which would take 0.5 s.

    With the usual threshold of 700 objects, later ones took an eighth of the processor time of the unit tests: each
    test leaves brokers, which are large cycles.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle files, classes and tests if --order-seed is set; tests that share fixtures stay together."""
    seed = config.getoption("order_seed")
    if seed is not None:

        def rank(name: str) -> bytes:
            return blake2b(f"{seed} {name}".encode(), digest_size=8).digest()

        items.sort(key=lambda item: [rank(part.nodeid) for part in item.listchain()])


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in several processes if --lanes is set; errors of the collection are reported as usual."""
    number: int | None = session.config.getoption("lanes")
    if number is None or session.testsfailed or session.config.option.collectonly:
        return None
    lanes.run(session, number)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write the outcomes for --outcomes: failed tests, and the reason of each skipped one."""
    path: str | None = terminalreporter.config.getoption("outcomes")
    if path is not None:
        stats = terminalreporter.stats
        failed = [report.nodeid for kind in ("failed", "error") for report in stats.get(kind, ())]
        skipped = [_skipped_because(report) for report in stats.get("skipped", ())]
        Path(path).write_text(
            json.dumps({"passed": len(stats.get("passed", ())), "failed": failed, "skipped": skipped})
        )


def _skipped_because(report: pytest.TestReport) -> str:
    assert isinstance(report.longrepr, tuple)
    return report.longrepr[2].removeprefix("Skipped: ")


@pytest.hookimpl(tryfirst=True)  # before Hypothesis reads it
def pytest_configure(config: pytest.Config) -> None:
    failure_report.choose_seed(config)


@pytest.hookimpl(tryfirst=True)  # before the fixtures, which start brokers
def pytest_runtest_setup() -> None:
    failure_report.begin_test()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and not skips.has_a_kind(_skipped_because(report)):
        report.outcome = "failed"
        report.longrepr = f"skipped without a kind of reason (tests/support/skips.py): {_skipped_because(report)}"
    if report.failed:
        report.sections += failure_report.sections(item)
    return report


_LOGGERS = [logging.getLogger(name) for name in ("", "sluice", "uvicorn")]


# Hooks of each test instead of fixtures, which would take 2 s of the processor time of the unit tests.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Restore logger levels, which commands that run in this process change."""
    levels = [logger.level for logger in _LOGGERS]
    try:
        return (yield)
    finally:
        for logger, level in zip(_LOGGERS, levels, strict=True):
            if logger.level != level:
                logger.setLevel(level)
