"""One broker shared by most tests, and one topic per test."""

import asyncio
import gc
import inspect
import re
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from sluice import Broker, testing
from sluice.embedded.options import has_upstream, session_broker
from tests.support import skips
from tests.support.broker_process import BrokerProcess, overrides, running_broker
from tests.support.place import Place

HERE = Path(__file__).parent

with warnings.catch_warnings():
    # Importing kafka-python calls a function that Python 3.11 and 3.12 deprecate.
    warnings.simplefilter("ignore", DeprecationWarning)
    import_module("kafka")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("write_table") and not hasattr(config, "workerinput"):
        writer = import_module("tools.docs.results.client_matrix").TableWriter()  # imports the clients: see above
        config.pluginmanager.register(writer)
    if config.getoption("write_fault_table") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(import_module("tools.docs.results.fault_table").FaultTableWriter())


# kafka-python's KafkaProducer leaves its socketpair (family 1) and a TCP or TLS socket (family 2) open if it cannot
# bootstrap, and its KafkaConsumer a TCP or TLS socket. Anything else that a test leaves open fails it.
_LEFT_OPEN = r"<(socket\.socket|ssl\.SSLSocket) fd=\d+, family=[12], type=1, "
SOCKETS_LEFT_OPEN = f"ignore:Exception ignored .*{_LEFT_OPEN}:pytest.PytestUnraisableExceptionWarning"


# With --kafka-upstream: the files whose tests need brokers of sluice, and why.
OWN_BROKERS = {
    "test_acls.py": "needs brokers with ACLs",
    "test_audit_commands.py": "an audit has its own brokers; its option is --upstream",
    "test_compaction.py": "needs a log cleaner that runs every few milliseconds",
    "test_coordinator_moves.py": "needs coordinators that move",
    "test_demo.py": "the demo has its own broker",
    "test_dump_log.py": "needs the data directory of a broker",
    "test_dump_metadata.py": "needs the data directory of a broker",
    "test_faults.py": "docs/faults-clients.md is about brokers of sluice",
    "test_findings.py": "an audit has its own brokers; its option is --upstream",
    "test_lost_brokers.py": "needs a broker that it can stop",
    "test_proxy.py": "it starts Apache Kafka and its proxies itself",
    "test_security.py": "needs brokers with users and listeners of every kind",
    "test_virtual_time.py": "needs brokers in virtual time",
}


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    is_long = config.getoption("client_audits")
    for item in items:
        if item.path.is_relative_to(HERE):
            if has_upstream() and item.path.name in OWN_BROKERS:
                item.add_marker(pytest.mark.skip(reason=skips.own_broker(OWN_BROKERS[item.path.name])))
            if item.get_closest_marker("client_audits") and not is_long:
                item.add_marker(pytest.mark.skip(reason=skips.campaign("clients")))
            item.add_marker(pytest.mark.filterwarnings(SOCKETS_LEFT_OPEN))


@pytest.fixture(scope="module", autouse=True)
def garbage_of_clients() -> Iterator[None]:
    """Collect the garbage of clients here, so that its warnings do not fail unrelated tests."""
    yield
    gc.collect()


# Without an initial rebalance delay, and with short heartbeat intervals for KIP-848 and share groups.
QUICK_GROUPS = (
    "group.initial.rebalance.delay.ms=0",
    "group.consumer.heartbeat.interval.ms=200",
    "group.consumer.min.heartbeat.interval.ms=100",
    "group.share.heartbeat.interval.ms=200",
    "group.share.min.heartbeat.interval.ms=100",
)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker without quotas, which must stop cleanly and close no connection because of an internal error."""
    with running_broker(tmp_path_factory.mktemp("broker") / "log", *overrides(*QUICK_GROUPS)) as process:
        yield process
        assert process.stop()[0] == 0
        assert [line for line in process.log_text().splitlines() if " INFO " not in line] == []


@pytest.fixture(scope="session")
def upstream() -> Iterator[str | None]:
    """The address of a proxy in front of the cluster of --kafka-upstream, for the whole session."""
    if not has_upstream():
        yield None
        return
    with session_broker() as proxy:
        yield proxy.bootstrap


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest, upstream: str | None) -> str:
    """Bootstrap address of the client matrix: --bootstrap, --kafka-upstream, or our broker."""
    named = request.config.getoption("bootstrap") or upstream
    if named is not None:
        return str(named)
    broker: BrokerProcess = request.getfixturevalue("broker")
    return broker.bootstrap


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses."""
    return re.sub(r"[^a-zA-Z0-9-]", "-", request.node.name)[:200]


# Longer than any scenario of the reference client takes; virtual time does not wait.
SCENARIO_LIMIT_S = 90


@pytest.fixture
def place(request: pytest.FixtureRequest, upstream: str | None) -> Place:
    """The broker that --bootstrap or --kafka-upstream names, or one of ours that runs during the test."""
    return Place(request.config.getoption("bootstrap") or upstream or "")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test on `place`: in real time on a named broker, in virtual time on ours."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    place: Place = arguments["place"]

    async def on_named() -> None:
        async with asyncio.timeout(SCENARIO_LIMIT_S):
            await test(**arguments)

    async def on_ours() -> None:
        async with Broker(config={"group.initial.rebalance.delay.ms": 0}) as broker, asyncio.timeout(SCENARIO_LIMIT_S):
            place.bootstrap = broker.bootstrap
            await test(**arguments)

    if place.bootstrap:
        asyncio.run(on_named())
    else:
        testing.run(on_ours())
    return True
