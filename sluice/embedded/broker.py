"""A broker or cluster in the current process and event loop, for tests.

    async with Broker(brokers=3, config={"sluice.election.delay.ms": 500}) as broker:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
        ...
        await broker.cluster.stop(1)
        (moved,) = await broker.wait_for(LeaderChange)

It behaves like `sluice serve`, without a process, signals and logging. SyncBroker is the same API for code without an
event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from os import PathLike
from random import Random  # noqa: TID251  (the broker's single source of randomness)
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from sluice.broker.journal.reader import JournalReader
from sluice.broker.process import BrokerProcess
from sluice.clock import LoopClock, sleep_ms, wall_ns
from sluice.config.broker_config import Config, Endpoint, address_of
from sluice.embedded.traces.of_broker import note_block, write_trace
from sluice.errors import ArgumentError, ConfigError, NotRunningError, SluiceError, WaitTimeoutError
from sluice.journal_events import AnyEvent, Event
from sluice.text.arguments import Count, Duration, Index, Port, checks_arguments
from sluice.web import load as load_page

from .assertions.journal_assertions import JournalAssertions
from .assertions.wait_conditions import POLL_INTERVAL_MS, Filters, WaitOptions, wait_condition
from .client import LocalClient
from .cluster_control import ClusterControl
from .fault_control import LocalFault, LocalFaults
from .quota_control import LocalQuota, QuotasSet, quotas_set, set_quota
from .scenario_control import LocalScenario, start_run
from .security import AclFields, Library, Mechanism, Security
from .traces import started
from .traces.started import Position, Recorded

if TYPE_CHECKING:
    from sluice.broker.scenarios.model import Scenario
    from sluice.broker.scenarios.report import StepDone

log = logging.getLogger("sluice")

# Some minutes of client activity, in at most 8 MiB.
JOURNAL_EVENTS = 16384
WAIT_S = 10.0
CLIENT_ID = "sluice-test"

_T = TypeVar("_T")
_E = TypeVar("_E", bound=Event)


@checks_arguments
class Broker(JournalAssertions):
    """Brokers with ids 1, 2, ... on free ports of 127.0.0.1, with a journal.

    The journal and the cluster state remain readable after the broker has stopped. An operation that is impossible in
    the current state raises `sluice.errors.SluiceError`.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        config: Mapping[str, str | float | bool] | None = None,
        admin_port: Port | None = None,
        seed: int = 0,
        tls: bool = False,
        sasl: Mechanism | None = None,
        users: Mapping[str, str] | None = None,
        acls: Sequence[AclFields] | None = None,
    ) -> None:
        """Configure the brokers; `async with` starts them.

        Args:
            brokers: Number of brokers.
            config: Broker properties by name.
            admin_port: Port of the admin HTTP server; 0 picks a free port, None disables the server.
            seed: Seed of all randomness.
            tls: Whether listeners use TLS, with a certificate made by trustme (extra `tls`).
            sasl: SASL mechanism that clients must use.
            users: Passwords by user, with `sasl`. Default: alice, with alice-secret.
            acls: ACLs, such as {"user": "alice", "allow": "Read", "topic": "orders"}, with `sasl`. None: no authorizer.

        Raises:
            ConfigError: An unknown property, or an invalid value.
        """
        given = config or {}
        self._security = Security(tls, sasl, users, acls, given)
        defaults: dict[str, str | float] = {
            **self._security.properties(),
            "sluice.brokers": brokers,
            "sluice.journal.events": JOURNAL_EVENTS,
            "sluice.journal.record.hashes": "true",
            "group.initial.rebalance.delay.ms": 0,
            "group.streams.initial.rebalance.delay.ms": 0,
        }
        self._config = Config.of({**defaults, **given})
        self._admin_port = admin_port
        self._seed = seed
        self._server: BrokerProcess | None = None

    async def __aenter__(self) -> Self:
        if self._server is not None:
            raise SluiceError("a broker can be started only once; create another one")
        for warning in self._config.warnings:
            log.warning(warning)
        host = self._config.text("sluice.admin.host")
        await self._start(None, None if self._admin_port is None else (host, self._admin_port))
        started.add(self, self)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        await self._stop()
        note_block(self, error)

    if not TYPE_CHECKING:  # type checkers find this misuse

        def __enter__(self) -> None:
            name = type(self).__name__
            raise ArgumentError(f"{name}: expected `async with`, got `with`. Or use sluice.Sync{name}")

        def __exit__(self, *args: object) -> None:  # Python looks it up before it enters
            pass

    async def reset(self) -> None:
        """Replace the brokers by new ones at the same addresses, in the initial state.

        Removes topics, groups, transactions, quotas and their recorded usage, faults, dynamic configs, ACLs, users and
        journal events, and closes all connections.

        Raises:
            SluiceError: `log.dirs` is set, as the files would remain.
        """
        before = self._running
        if before.cluster.logs.directory is not None:
            raise SluiceError("reset: not supported with log.dirs, whose files would remain; create another broker")
        await self._stop()
        admin = None if before.admin is None else (before.admin.host, before.admin.port)
        await self._start({node_id: one.endpoints for node_id, one in before.servers.items()}, admin)

    async def _start(self, listeners: Mapping[int, Sequence[Endpoint]] | None, admin: tuple[str, int] | None) -> None:
        server = await self._new_server()
        await server.start(listeners, admin)
        self._server = self._with_acls(server)

    async def _stop(self) -> None:
        await self._started.stop()

    async def _new_server(self) -> BrokerProcess:
        loop = asyncio.get_running_loop()
        random = Random(self._seed)  # noqa: S311  (runs are repeatable)
        return BrokerProcess(self._config, LoopClock(loop), random, loop, load_page)

    def _with_acls(self, server: BrokerProcess) -> BrokerProcess:
        if self._security.acls:
            server.cluster.acls.create(self._security.acls)
        return server

    @property
    def bootstrap(self) -> str:
        """`host:port` of all brokers, including stopped ones, for `bootstrap.servers`."""
        return ",".join(self.brokers.values())

    @property
    def brokers(self) -> dict[int, str]:
        """`host:port` of the first listener of each broker, by node id."""
        return {node_id: str(server.endpoints[0]) for node_id, server in self._started.servers.items()}

    @property
    def admin(self) -> str | None:
        """The URL of the admin HTTP port; None if it is disabled."""
        admin = self._started.admin
        return None if admin is None else f"http://{address_of(admin.host, admin.port)}"

    @property
    def cluster(self) -> ClusterControl:
        """Control of the brokers, topics and leaders."""
        return ClusterControl(self._started)

    @property
    def faults(self) -> LocalFaults:
        """The fault rules."""
        return LocalFaults(self._running.faults)

    @property
    def journal(self) -> JournalReader:
        """The journal. Raises ConfigError if `sluice.journal.events` is 0."""
        cluster = self._started.cluster
        if cluster.journal is None:
            raise ConfigError("there is no journal: sluice.journal.events is 0; set it to 16384, for example")
        return JournalReader(cluster.journal, cluster.runtime.clock)

    @property
    def quotas(self) -> list[QuotasSet]:
        """The current quotas from any source except properties."""
        return quotas_set(self._started.cluster)

    def quota(
        self,
        *,
        client_id: str | None = None,
        user: str | None = None,
        produce: float | str | None = None,
        fetch: float | str | None = None,
        request_percentage: float | None = None,
        controller_mutation_rate: float | None = None,
        producer_byte_rate: float | str | None = None,
        consumer_byte_rate: float | str | None = None,
    ) -> LocalQuota:
        """Set quotas of a client id, a user, or both; without either, the default of all client ids.

            with broker.quota(client_id="shop", produce="100k"):
                ...

        Args:
            client_id: Client id.
            user: User name of the principal.
            produce: Produce rate in bytes per second on each broker, such as 100_000 or "100k".
            fetch: Fetch rate in bytes per second on each broker.
            request_percentage: Percentage of one thread's time.
            controller_mutation_rate: Created and deleted partitions per second.
            producer_byte_rate: Kafka's name of `produce`.
            consumer_byte_rate: Kafka's name of `fetch`.

        Returns:
            The quotas, effective from the next request until they are removed.

        Raises:
            SluiceError: No quota is given, or a value is invalid.
        """
        rates = {"produce": (produce, producer_byte_rate), "fetch": (fetch, consumer_byte_rate)}
        rest = {"request_percentage": request_percentage, "controller_mutation_rate": controller_mutation_rate}
        return set_quota(self._running.cluster, client_id, user, rates, rest)

    def client(self, client_id: str = CLIENT_ID) -> LocalClient:
        """Return a client that sends and receives records, as a super user."""
        return LocalClient(self._security.own_client(self.bootstrap, client_id))

    def client_config(self, library: Library, *, client_id: str = CLIENT_ID, user: str | None = None) -> dict[str, Any]:
        """Return the settings of a client library: addresses, client id, TLS and login.

            confluent_kafka.Producer(broker.client_config("confluent-kafka"))
            aiokafka.AIOKafkaProducer(**broker.client_config("aiokafka"))

        Args:
            library: confluent-kafka, aiokafka, kafka-python or java.
            client_id: Client id.
            user: One of the users; by default the first.

        Raises:
            ConfigError: Another library or user, or `listeners` is set by `config`.
        """
        return self._security.client(library, self.bootstrap, client_id, user)

    @overload
    async def wait_for(
        self, what: type[_E], *, where: Callable[[_E], object] | None = None, **options: Unpack[WaitOptions]
    ) -> list[_E]: ...

    @overload
    async def wait_for(
        self, what: str, *, where: Callable[[Any], object] | None = None, **options: Unpack[WaitOptions]
    ) -> list[AnyEvent]: ...

    @overload
    async def wait_for(self, what: LocalFault, *, times: int = 1, timeout_s: float = WAIT_S) -> int: ...

    @overload
    async def wait_for(self, what: Callable[[], _T], *, timeout_s: float = WAIT_S) -> _T: ...

    async def wait_for(
        self,
        what: type[_E] | str | LocalFault | Callable[[], object],
        *,
        where: Callable[[_E], object] | None = None,
        times: Count = 1,
        after: Index = 0,
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
        timeout_s: Duration = WAIT_S,
    ) -> object:
        """Wait for a condition and return its result.

        Args:
            what: A type of `sluice.journal_events` or its name, a fault, or a function without arguments.
                For an event type: wait for `times` matching events in the journal, and return them.
                For a fault: wait until it has hit `times` times, and return its hits.
                For a function: wait until it returns a true value, and return that.
            where: Predicate of matching events.
            times: Number of events or hits.
            after: `seq` of the last event to ignore.
            client_id: Client id, or several, of matching events.
            api: API name, or several, of matching events.
            broker: Node id, or several, of matching events.
            timeout_s: Timeout in seconds.

        Raises:
            WaitTimeoutError: The condition was not met; the message lists the latest events.
        """
        wait = wait_condition(lambda: self.journal, what, where, times, Filters(after, client_id, api, broker))
        clock = self._started.cluster.runtime.clock
        deadline_ms = clock.monotonic_ms() + timeout_s * 1000
        while (found := wait.poll()) is None:
            if clock.monotonic_ms() >= deadline_ms:
                raise WaitTimeoutError(wait.describe_timeout(timeout_s))
            await sleep_ms(clock, POLL_INTERVAL_MS)
        return found

    def write_trace(self, path: PathLike[str] | str) -> None:
        """Write the journal's events as a trace, one HTML file.

        Raises:
            SluiceError: The file cannot be written.
        """
        write_trace(self, path)

    async def run_scenario(self, scenario: "Scenario | PathLike[str] | str") -> "list[StepDone]":
        """Run a scenario to its end; cancellation stops it early. It then restores brokers, quotas and configs.

        Args:
            scenario: A name in the catalogue, a file, or a `sluice.broker.scenarios.model.Scenario`. Its `config` is
                ignored: set these properties in the constructor.

        Returns:
            The steps, each with its problem if it failed.

        Raises:
            SluiceError: The scenario is invalid, or requires another number of brokers or running ones.
        """
        run = self.start_scenario(scenario)
        try:
            return await run.wait()
        finally:
            run.stop()

    def start_scenario(self, scenario: "Scenario | PathLike[str] | str") -> LocalScenario:
        """Start a scenario in the background. Arguments and errors are those of `run_scenario`."""
        return start_run(scenario, self._running)

    @property
    def _position(self) -> Position | None:
        journal = None if self._server is None else self._server.cluster.journal
        return None if journal is None else Position(journal, journal.written)

    @property
    def _has_stopped(self) -> bool:
        return self._server is not None and self._server.is_stopping

    def _recorded(self, after: int = 0) -> Recorded:
        """Return the events after a `seq`, for a trace."""
        process, events = self._started, self.journal.events(after=after)
        clock, journal = process.cluster.runtime.clock, process.cluster.journal
        assert journal is not None
        ahead_ns = None if process.is_virtual else journal.ns(clock.monotonic_ms()) - wall_ns()
        return Recorded(self.bootstrap, events, ahead_ns)

    @property
    def _running(self) -> BrokerProcess:
        if self._started.is_stopping:
            raise NotRunningError("the broker has stopped")
        return self._started

    @property
    def _started(self) -> BrokerProcess:
        if self._server is None:
            raise NotRunningError("a broker is available only within `async with`")
        return self._server
