"""The pytest plugin (loaded automatically): broker fixtures, and journal events in the report of a failed test.

    def test_orders_survive_a_leader_move(kafka_broker):
        with kafka_broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="Produce", times=2):
            shop.order("one pizza", kafka=kafka_broker.bootstrap)
        kafka_broker.assert_requests("Produce", client_id="shop", exactly=3)

A broker is a SyncBroker with its own thread and event loop, so tests may be functions or coroutines of any plugin.
"""

import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Protocol, Unpack

import pytest

from sluice.errors import ConfigError, ProxyError, SluiceError

from .observers import add_options, observe_tests

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from sluice.embedded.options import BrokerOptions, Started
    from sluice.embedded.sync_broker import SyncBroker
    from sluice.embedded.sync_handles import SyncScenario

_MARK = "kafka"
_EXPLORE = "kafka_explore"
_EXPLORE_HELP = (
    "kafka_explore(runs=200, invariants=[], brokers=1, config={}, seed=0, replay=None, order=0): "
    "run a coroutine test with the fixture kafka_run again and again in virtual time, with failures."
)
_HELP = (
    "kafka(brokers=1, config={}, quota={}, faults=[], scenario=None, seed=0, admin_port=None, tls=False, sasl=None, "
    "users={}, acls=[]): "
    "options of the broker of the fixture kafka_broker, or the quota and faults of kafka_broker_session for this test."
)


class SourceFinder:
    """An import finder for sluice that precedes pytest's import hook.

    The hook would rewrite the asserts of sluice, which takes half a second.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> "ModuleSpec | None":
        return PathFinder.find_spec(name, path) if name.startswith("sluice.") else None


sys.meta_path.insert(0, SourceFinder)


class KafkaClusterFactory(Protocol):
    """The type of the fixture `kafka_cluster_factory`."""

    def __call__(self, **options: Unpack["BrokerOptions"]) -> "SyncBroker":
        """Start brokers with the options of the mark; they stop when the test ends."""


# The packages between the line of a test and the raise.
_INTERNAL = ("sluice", "asyncio", "concurrent")
_REPORTED_BROKERS = pytest.StashKey[list["SyncBroker"]]()  # per test: the brokers in its failure report
_SESSION_OPTIONS = pytest.StashKey[ExitStack]()  # per test: removes its options from the session's broker
_SESSION_BROKER = pytest.StashKey["SyncBroker"]()


# -- fixtures ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def _kafka_started(request: pytest.FixtureRequest) -> "Iterator[Started]":
    from sluice.embedded.options import started

    item: pytest.Item = request.node
    with _failing_without_traceback(item), _skipped_without_own_broker(), started(**_options(item)) as begun:
        _add_to_report(item, begun.broker)
        yield begun


@pytest.fixture
def kafka_broker(_kafka_started: "Started") -> "SyncBroker":
    """Provide the brokers of this test, configured by @pytest.mark.kafka(...). See sluice.SyncBroker."""
    return _kafka_started.broker


@pytest.fixture
def kafka_scenario(_kafka_started: "Started") -> "SyncScenario":
    """Provide the scenario of @pytest.mark.kafka(scenario=...), started with the test: done, steps, wait(), stop()."""
    if _kafka_started.scenario is None:
        pytest.fail('kafka_scenario: no scenario; add @pytest.mark.kafka(scenario="NAME")', pytrace=False)
    return _kafka_started.scenario


@pytest.fixture(scope="session")
def kafka_broker_session(request: pytest.FixtureRequest) -> "Iterator[SyncBroker]":
    """Provide one broker, at one address, for all tests of the session; each test finds its initial state."""
    from sluice.embedded.options import session_broker

    with _skipped_without_own_broker(), session_broker() as broker:
        request.config.stash[_SESSION_BROKER] = broker
        yield broker
        del request.config.stash[_SESSION_BROKER]


@pytest.fixture
def kafka_cluster_factory(request: pytest.FixtureRequest) -> "Iterator[KafkaClusterFactory]":
    """Provide a function that starts brokers with the options of @pytest.mark.kafka; each call starts new ones."""
    from sluice.embedded.options import started

    with ExitStack() as ends:

        def start(**options: Unpack["BrokerOptions"]) -> "SyncBroker":
            broker = ends.enter_context(started(**options)).broker
            _add_to_report(request.node, broker)
            return broker

        yield start


@pytest.fixture
def kafka_run(request: pytest.FixtureRequest) -> None:
    """Stand for the sluice.explore.Run of a test with @pytest.mark.kafka_explore(...), which each run of it gets."""
    if request.node.get_closest_marker(_EXPLORE) is None:
        pytest.fail("kafka_run: only with @pytest.mark.kafka_explore", pytrace=False)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    mark = pyfuncitem.get_closest_marker(_EXPLORE)
    if mark is None:
        return None
    from .exploring import run_explored

    run_explored(pyfuncitem, mark)
    return True


# -- the mark ----------------------------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _HELP)
    config.addinivalue_line("markers", _EXPLORE_HELP)
    observe_tests(config)
    for option, variable in _UPSTREAM_OPTIONS.items():
        value = config.getoption(option)
        if value is not None:
            _set_variable(config, variable, value)


# -- a cluster in place of the brokers ---------------------------------------------------------------------------------

_UPSTREAM = "SLUICE_KAFKA_UPSTREAM"
_UPSTREAM_OPTIONS = {"kafka_upstream": _UPSTREAM, "kafka_upstream_config": f"{_UPSTREAM}_CONFIG"}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("sluice")
    group.addoption(
        "--kafka-upstream",
        metavar="HOST:PORT,...",
        help="Put a proxy in front of this cluster in place of each broker. Default: SLUICE_KAFKA_UPSTREAM.",
    )
    add_options(group)
    group.addoption(
        "--kafka-explore-runs",
        metavar="N",
        type=int,
        help="Number of runs of each test with the mark kafka_explore. Default: that of the mark, or 200.",
    )
    group.addoption(
        "--kafka-explore-jobs",
        metavar="N",
        type=int,
        default=1,
        help="Number of processes of each test with the mark kafka_explore. Default: 1.",
    )
    group.addoption(
        "--kafka-upstream-config",
        metavar="FILE",
        help="Client properties with which the proxies connect. Default: SLUICE_KAFKA_UPSTREAM_CONFIG.",
    )


def pytest_report_header(config: pytest.Config) -> list[str]:
    upstream = os.environ.get(_UPSTREAM)
    return [f"sluice: proxies in front of {upstream}"] if upstream else []


def _set_variable(config: pytest.Config, name: str, value: str) -> None:
    before = os.environ.get(name)
    os.environ[name] = value

    def restore() -> None:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before

    config.add_cleanup(restore)


@contextmanager
def _skipped_without_own_broker() -> Iterator[None]:
    try:
        yield
    except ProxyError as error:
        pytest.skip(_skip_reason(error))


def _skip_reason(error: BaseException) -> str:
    return f"kafka-upstream: {error}"


def _options(item: pytest.Item) -> "BrokerOptions":
    """Return the options of all marks; the closest one takes precedence."""
    from sluice.embedded.options import checked

    options: dict[str, object] = {}
    for mark in reversed(list(item.iter_markers(_MARK))):
        if mark.args:
            pytest.fail(f"@pytest.mark.kafka: expected NAME=VALUE, got {mark.args[0]!r}", pytrace=False)
        options |= mark.kwargs
    return checked(options)


@contextmanager
def _failing_without_traceback(item: pytest.Item) -> Iterator[None]:
    try:
        yield
    except SluiceError as error:
        what = "@pytest.mark.kafka" if item.get_closest_marker(_MARK) else "kafka"
        raise pytest.fail.Exception(f"{what}: {error}", pytrace=False) from None


# -- the session's broker, for one test --------------------------------------------------------------------------------


@pytest.hookimpl(trylast=True)  # after the setup of fixtures
def pytest_runtest_setup(item: pytest.Item) -> None:
    broker = _session_broker(item)
    if broker is not None:
        _add_to_report(item, broker)
        if "kafka_broker" not in item.fixturenames:  # type: ignore[attr-defined]  # functions have it
            _apply_options(item, broker)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # after the teardown of fixtures
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    try:
        return (yield)
    finally:
        broker = _session_broker(item)
        if broker is not None:
            from sluice.embedded.upstream import raise_refused

            with _failing_without_traceback(item):
                item.stash.get(_SESSION_OPTIONS, ExitStack()).close()
                try:
                    raise_refused(broker)
                finally:
                    broker.reset()


def _session_broker(item: pytest.Item) -> "SyncBroker | None":
    broker = item.config.stash.get(_SESSION_BROKER, None)
    return broker if broker is not None and "kafka_broker_session" in getattr(item, "fixturenames", ()) else None


def _apply_options(item: pytest.Item, broker: "SyncBroker") -> None:
    from sluice.embedded.options import RUNNING_BROKER_OPTIONS, applied

    with _failing_without_traceback(item):
        options = _options(item)
        for name in options:
            if name not in RUNNING_BROKER_OPTIONS:
                raise ConfigError(
                    f"{name}: only for kafka_broker; kafka_broker_session accepts {', '.join(RUNNING_BROKER_OPTIONS)}"
                )
        ends = item.stash[_SESSION_OPTIONS] = ExitStack()
        ends.enter_context(applied(broker, options))


# -- the report of a failed test ---------------------------------------------------------------------------------------


def _add_to_report(item: pytest.Item, broker: "SyncBroker") -> None:
    item.stash.setdefault(_REPORTED_BROKERS, []).append(broker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    if call.excinfo is not None:
        error = call.excinfo.value
        if not item.config.getoption("fulltrace"):
            _hide_internal_frames(error)
        if os.environ.get(_UPSTREAM) and isinstance(error, ProxyError):
            skip = pytest.skip.Exception(_skip_reason(error)).with_traceback(error.__traceback__)
            call.excinfo = pytest.ExceptionInfo.from_exception(skip)
    report = yield
    if report.failed and (brokers := item.stash.get(_REPORTED_BROKERS, ())):
        from sluice.embedded.assertions.journal_assertions import last_events

        report.sections += [("sluice journal", last_events(broker)) for broker in brokers]
    if call.when == "teardown":
        item.stash[_REPORTED_BROKERS] = []  # pytest keeps items to the end, and a broker has its journal
    return report


def _hide_internal_frames(error: BaseException) -> None:
    """End the traceback of an error for users at their own line, as `__tracebackhide__` in each function would."""
    if not isinstance(error, SluiceError):
        return
    entry, own = error.__traceback__, None
    while entry is not None:
        if str(entry.tb_frame.f_globals.get("__name__")).split(".")[0] not in _INTERNAL:
            own = entry
        entry = entry.tb_next
    if own is not None:
        own.tb_next = None
