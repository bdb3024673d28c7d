"""The pytest plugin, which pytest finds by itself: brokers as fixtures, and their journal in the report of what fails.

    def test_orders_survive_a_leader_that_moves(kafka_broker):
        with kafka_broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="Produce", times=2):
            shop.order("one pizza", kafka=kafka_broker.bootstrap)
        kafka_broker.assert_requests("Produce", client_id="shop", exactly=3)

A broker is a SyncBroker: it has a thread with a loop of its own, so that tests may be plain functions or coroutines of
any plugin. Each has free ports of its own, so that tests may run in several processes. Nothing of sluice but this
module is loaded before a test asks for a broker. docs/pytest.md is for those who use it.
"""

import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Protocol, Unpack

import pytest

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from sluice.embedded.options import BrokerOptions, Started
    from sluice.embedded.sync_broker import SyncBroker
    from sluice.embedded.sync_handles import SyncScenario

_MARK = "kafka"
_HELP = (
    "kafka(brokers=1, config={}, quota={}, faults=[], scenario=None, seed=0, admin_port=None): "
    "what the broker of the fixture kafka_broker is like, or what kafka_broker_session is told for this test "
    "(quota and faults only)."
)


class SourceFinder:
    """Finds the modules of sluice before pytest's import hook does.

    pytest would rewrite the asserts of all modules of a plugin's distribution. That takes half a second at the first
    test and makes the asserts in the path of a request slower.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> "ModuleSpec | None":
        return PathFinder.find_spec(name, path) if name.startswith("sluice.") else None


sys.meta_path.insert(0, SourceFinder)


class KafkaClusterFactory(Protocol):
    """What the fixture `kafka_cluster_factory` is."""

    def __call__(self, **options: Unpack["BrokerOptions"]) -> "SyncBroker":
        """Starts brokers, as the options of the mark have them; they are stopped when the test is over."""


_REPORTED_BROKERS = pytest.StashKey[list["SyncBroker"]]()  # of a test: its failure report has their journals
_SESSION_OPTIONS = pytest.StashKey[ExitStack]()  # of a test: removes its options from the session's broker
_SESSION_BROKER = pytest.StashKey["SyncBroker"]()


# -- fixtures ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def _kafka_started(request: pytest.FixtureRequest) -> "Iterator[Started]":
    from sluice.embedded.options import started

    item: pytest.Item = request.node
    with _failing_without_traceback(item), started(**_options(item)) as begun:
        _add_to_report(item, begun.broker)
        yield begun


@pytest.fixture
def kafka_broker(_kafka_started: "Started") -> "SyncBroker":
    """A broker for this test, or several: as @pytest.mark.kafka(...) has it. See sluice.SyncBroker."""
    return _kafka_started.broker


@pytest.fixture
def kafka_scenario(_kafka_started: "Started") -> "SyncScenario":
    """The scenario of @pytest.mark.kafka(scenario=...), which began with the test: done, steps, wait(), stop()."""
    if _kafka_started.scenario is None:
        pytest.fail('kafka_scenario: there is none without @pytest.mark.kafka(scenario="NAME")', pytrace=False)
    return _kafka_started.scenario


@pytest.fixture(scope="session")
def kafka_broker_session(request: pytest.FixtureRequest) -> "Iterator[SyncBroker]":
    """One broker for all tests of the session, at one address; after each test that uses it, it is as at its start."""
    from sluice.embedded.sync_broker import SyncBroker

    with SyncBroker() as broker:
        request.config.stash[_SESSION_BROKER] = broker
        yield broker
        del request.config.stash[_SESSION_BROKER]


@pytest.fixture
def kafka_cluster_factory(request: pytest.FixtureRequest) -> "Iterator[KafkaClusterFactory]":
    """Starts brokers when the test calls it, with the options of @pytest.mark.kafka; each call other ones."""
    from sluice.embedded.options import started

    with ExitStack() as ends:

        def start(**options: Unpack["BrokerOptions"]) -> "SyncBroker":
            broker = ends.enter_context(started(**options)).broker
            _add_to_report(request.node, broker)
            return broker

        yield start


# -- the mark ----------------------------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _HELP)


def _options(item: pytest.Item) -> "BrokerOptions":
    """Return the options of all marks; the mark closest to the test takes precedence."""
    from sluice.embedded.options import checked

    options: dict[str, object] = {}
    for mark in reversed(list(item.iter_markers(_MARK))):
        if mark.args:
            pytest.fail(f"@pytest.mark.kafka: {mark.args[0]!r}: say which option it is, NAME=VALUE", pytrace=False)
        options |= mark.kwargs
    return checked(options)


@contextmanager
def _failing_without_traceback(item: pytest.Item) -> Iterator[None]:
    """Turn SluiceError into a failure of one line, without a traceback through sluice."""
    from .errors import SluiceError

    try:
        yield
    except SluiceError as error:
        what = "@pytest.mark.kafka" if item.get_closest_marker(_MARK) else "kafka"
        raise pytest.fail.Exception(f"{what}: {error}", pytrace=False) from None


# -- the session's broker, for one test --------------------------------------------------------------------------------


@pytest.hookimpl(trylast=True)  # when the fixtures are there
def pytest_runtest_setup(item: pytest.Item) -> None:
    broker = _session_broker(item)
    if broker is not None:
        _add_to_report(item, broker)
        if "kafka_broker" not in item.fixturenames:  # type: ignore[attr-defined]  # of a function, as it uses one
            _apply_options(item, broker)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # when the fixtures are gone
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    try:
        return (yield)
    finally:
        broker = _session_broker(item)
        if broker is not None:
            with _failing_without_traceback(item):
                item.stash.get(_SESSION_OPTIONS, ExitStack()).close()
                broker.reset()


def _session_broker(item: pytest.Item) -> "SyncBroker | None":
    """The session's broker, if this test uses it."""
    broker = item.config.stash.get(_SESSION_BROKER, None)
    return broker if broker is not None and "kafka_broker_session" in getattr(item, "fixturenames", ()) else None


def _apply_options(item: pytest.Item, broker: "SyncBroker") -> None:
    from sluice.embedded.options import RUNNING_BROKER_OPTIONS, applied

    from .errors import ConfigError

    with _failing_without_traceback(item):
        options = _options(item)
        for name in options:
            if name not in RUNNING_BROKER_OPTIONS:
                raise ConfigError(
                    f"{name}: is for kafka_broker; kafka_broker_session takes {', '.join(RUNNING_BROKER_OPTIONS)}"
                )
        ends = item.stash[_SESSION_OPTIONS] = ExitStack()
        ends.enter_context(applied(broker, options))


# -- the journal in the report -----------------------------------------------------------------------------------------


def _add_to_report(item: pytest.Item, broker: "SyncBroker") -> None:
    item.stash.setdefault(_REPORTED_BROKERS, []).append(broker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and (brokers := item.stash.get(_REPORTED_BROKERS, ())):
        from sluice.embedded.journal_assertions import last_events

        report.sections += [("sluice journal", last_events(broker)) for broker in brokers]
    return report
