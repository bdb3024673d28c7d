"""A broker, or a cluster of them, in one's own process and event loop: for tests.

    async with Broker(brokers=3, config={"sluice.election.delay.ms": 500}) as broker:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
        ...
        await broker.cluster.stop(1)
        (moved,) = await broker.wait_for(LeaderChange)

Everything else is as with `sluice serve`, of which this is the same without a process, signals and logging. Its twin
for code without an event loop is SyncBroker (sync_broker.py).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from os import PathLike
from random import Random  # noqa: TID251  (a broker's one source of chance is made here)
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar, overload

from sluice.broker.journal.reader import JournalReader
from sluice.broker.process import BrokerProcess
from sluice.clock import LoopClock, sleep_ms
from sluice.config.broker_config import Config, address_of
from sluice.errors import ConfigError, SluiceError
from sluice.journal_events import Event
from sluice.web import load as load_page

from .client import LocalClient
from .cluster_control import ClusterControl
from .fault_control import LocalFault, LocalFaults
from .journal_assertions import JournalAssertions
from .quota_control import LocalQuota, QuotasSet, quotas_set, set_quota
from .scenario_control import LocalScenario, start_run
from .wait_conditions import POLL_INTERVAL_MS, Filters, wait_condition

if TYPE_CHECKING:
    from sluice.broker.scenarios.model import Scenario
    from sluice.broker.scenarios.report import StepDone

log = logging.getLogger("sluice")

# A test asks afterwards: what its clients do in some minutes, in 8 MiB at most.
_JOURNAL_EVENTS = 16384
WAIT_S = 10.0
CLIENT_ID = "sluice-test"

_T = TypeVar("_T")
_E = TypeVar("_E", bound=Event)


class Broker(JournalAssertions):
    """Brokers with ids 1, 2, ... on free ports of 127.0.0.1, with a journal, unless `config`, properties by their
    names, says else.

    What cannot be done to a broker as it is raises `sluice.errors.SluiceError`, one line that says why. What was there
    can still be read when it has stopped, the journal for example.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        config: Mapping[str, str | float] | None = None,
        admin_port: int | None = None,
        seed: int = 0,
    ) -> None:
        """`admin_port`: of the admin HTTP port, 0 for a free one, None for none. The same `seed`, the same chance.

        Raises `sluice.errors.ConfigError` for what cannot be configured.
        """
        defaults: dict[str, str | float] = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "sluice.brokers": brokers,
            "sluice.journal.events": _JOURNAL_EVENTS,
        }
        self._config = Config.of({**defaults, **(config or {})})
        self._admin_port = admin_port
        self._seed = seed
        self._server: BrokerProcess | None = None

    async def __aenter__(self) -> "Broker":
        if self._server is not None:
            raise SluiceError("a broker is started once: make another one")
        for warning in self._config.warnings:
            log.warning(warning)
        host = self._config.text("sluice.admin.host")
        server = self._new_server()
        await server.start(admin=None if self._admin_port is None else (host, self._admin_port))
        self._server = server
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._started.stop()

    async def reset(self) -> None:
        """Makes all as it was at the start, at the same addresses: other brokers take the places of these.

        So nothing is left of topics, groups, transactions, quotas and what was used of them, faults, configs, ACLs,
        users, brokers that were stopped, and of the journal; clients are cut off. Raises SluiceError where `log.dirs`
        is set, as what is on disk stays.
        """
        before = self._running
        if before.cluster.logs.directory is not None:
            raise SluiceError("reset: what is in log.dirs stays there: make another broker")
        await before.stop()
        admin = None if before.admin is None else (before.admin.host, before.admin.port)
        server = self._new_server()
        await server.start({node_id: one.endpoints for node_id, one in before.servers.items()}, admin)
        self._server = server

    def _new_server(self) -> BrokerProcess:
        loop = asyncio.get_running_loop()
        random = Random(self._seed)  # noqa: S311  (a test broker wants to be repeatable)
        return BrokerProcess(self._config, LoopClock(loop), random, loop, load_page)

    @property
    def bootstrap(self) -> str:
        """`host:port` of all brokers, those that are stopped too, for a client's `bootstrap.servers`."""
        return ",".join(self.brokers.values())

    @property
    def brokers(self) -> dict[int, str]:
        """`host:port` of the first listener of each broker, by node id."""
        return {node_id: str(server.endpoints[0]) for node_id, server in self._started.servers.items()}

    @property
    def admin(self) -> str | None:
        """Where the admin HTTP port is, if there is one."""
        admin = self._started.admin
        return None if admin is None else f"http://{address_of(admin.host, admin.port)}"

    @property
    def cluster(self) -> ClusterControl:
        """The brokers, topics and leaders, and what can be done to them."""
        return ClusterControl(self._started)

    @property
    def faults(self) -> LocalFaults:
        """The fault rules: what the broker does wrong on command."""
        return LocalFaults(self._running.faults)

    @property
    def journal(self) -> JournalReader:
        """What happened. Raises ConfigError where `sluice.journal.events` is 0."""
        cluster = self._started.cluster
        if cluster.journal is None:
            raise ConfigError("there is no journal: sluice.journal.events is 0; 16384 keeps so many events")
        return JournalReader(cluster.journal, cluster.clock)

    @property
    def quotas(self) -> list[QuotasSet]:
        """The quotas that are set now, whoever has set them, those of properties left out."""
        return quotas_set(self._started.cluster)

    def quota(
        self,
        *,
        client_id: str | None = None,
        user: str | None = None,
        produce: float | str | None = None,
        fetch: float | str | None = None,
        request_percentage: float | None = None,
    ) -> LocalQuota:
        """Sets quotas of a client id, a user, or a user's client id; of all client ids, where neither is given.

        `produce` and `fetch` are bytes per second on each broker, such as 100_000 or "100k"; `request_percentage` is of
        one thread's time. They hold from the next request on, until what is returned is removed:

            with broker.quota(client_id="shop", produce="100k"):
                ...
        """
        return set_quota(self._running.cluster, client_id, user, produce, fetch, request_percentage)

    def client(self, client_id: str = CLIENT_ID) -> LocalClient:
        """Return a client that writes and reads records, for a test of something else."""
        return LocalClient(self.bootstrap, client_id)

    @overload
    async def wait_for(
        self,
        what: type[_E],
        *,
        where: Callable[[_E], object] | None = None,
        times: int = 1,
        after: int = 0,
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
        timeout_s: float = WAIT_S,
    ) -> list[_E]: ...

    @overload
    async def wait_for(self, what: LocalFault, *, times: int = 1, timeout_s: float = WAIT_S) -> int: ...

    @overload
    async def wait_for(self, what: Callable[[], _T], *, timeout_s: float = WAIT_S) -> _T: ...

    async def wait_for(
        self,
        what: type[_E] | LocalFault | Callable[[], object],
        *,
        where: Callable[[_E], object] | None = None,
        times: int = 1,
        after: int = 0,
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
        timeout_s: float = WAIT_S,
    ) -> object:
        """Returns when something has happened.

        `what` is a type of `sluice.journal_events`: then the journal has `times` such events with a `seq` above
        `after`, of this client, API and broker, for which `where` is true; these are returned. Or it is a fault:
        then it has hit so many `times`; how often is returned. Or it is a function without arguments: then it has
        returned something true; that is returned.

        Raises TimeoutError when that has not happened within `timeout_s`, which tells what has happened instead.
        """
        wait = wait_condition(self, what, where, times, Filters(after, client_id, api, broker))
        clock = self._started.cluster.clock
        deadline_ms = clock.monotonic_ms() + timeout_s * 1000
        while (found := wait.poll()) is None:
            if clock.monotonic_ms() >= deadline_ms:
                raise TimeoutError(wait.describe_timeout(timeout_s))
            await sleep_ms(clock, POLL_INTERVAL_MS)
        return found

    async def run_scenario(self, scenario: "Scenario | PathLike[str] | str") -> "list[StepDone]":
        """Runs a scenario of the catalogue by its name, one in a file, or a `sluice.broker.scenarios.model.Scenario`.

        Returns what was done, and for what could not be the reason, when the scenario has ended; brokers, quotas and
        configs are again as before. Who gives up waiting for it ends it. Raises SluiceError for a scenario that cannot
        be, or not on these brokers: they must be as many as it says, and run; its `config` is for who starts them.
        """
        run = self.start_scenario(scenario)
        try:
            return await run.wait()
        finally:
            run.stop()

    def start_scenario(self, scenario: "Scenario | PathLike[str] | str") -> LocalScenario:
        """Begins a scenario that runs while the test goes on, and returns it. Raises as run_scenario does."""
        return start_run(scenario, self._running)

    @property
    def _running(self) -> BrokerProcess:
        if self._started.is_stopping:
            raise SluiceError("the broker has stopped")
        return self._started

    @property
    def _started(self) -> BrokerProcess:
        if self._server is None:
            raise SluiceError("a broker runs within `async with`")
        return self._server
