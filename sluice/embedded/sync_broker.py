"""Broker for code without an event loop, or with another one: the same members, which block.

    with SyncBroker(brokers=3) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
        ...
        broker.cluster.stop(1)
        (moved,) = broker.wait_for(LeaderChange)

The broker runs in a thread of its own (loop_thread.py). All of this may be called from any other thread.
"""

from collections.abc import Callable, Collection, Mapping
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar, overload

from sluice.errors import ConfigError
from sluice.journal_events import Event

from .broker import CLIENT_ID, WAIT_S, Broker
from .journal_assertions import JournalAssertions
from .loop_thread import BrokerThread
from .quota_control import QuotasSet
from .sync_handles import SyncClient, SyncClusterControl, SyncFault, SyncFaults, SyncJournal, SyncQuota, SyncScenario
from .wait_conditions import LOOK_EVERY_MS, EventsWait, Filters, HitsWait, TruthWait, Wait, is_event_type

if TYPE_CHECKING:
    from sluice.broker.scenarios.model import Scenario
    from sluice.broker.scenarios.report import StepDone

_T = TypeVar("_T")
_E = TypeVar("_E", bound=Event)


class SyncBroker(JournalAssertions):
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
        """As Broker's."""
        self._broker = Broker(brokers, config=config, admin_port=admin_port, seed=seed)
        self._thread = BrokerThread(self._broker)

    def __enter__(self) -> "SyncBroker":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._thread.stop()
        if error is None:
            self._thread.raise_failure()

    def reset(self) -> None:
        """Makes all as it was at the start, at the same addresses, as Broker.reset does."""
        self._thread.run(self._broker.reset)

    @property
    def bootstrap(self) -> str:
        """`host:port` of all brokers, those that are stopped too, for a client's `bootstrap.servers`."""
        return self._thread.call(lambda: self._broker.bootstrap)

    @property
    def brokers(self) -> dict[int, str]:
        """`host:port` of the first listener of each broker, by node id."""
        return self._thread.call(lambda: self._broker.brokers)

    @property
    def admin(self) -> str | None:
        """Where the admin HTTP port is, if there is one."""
        return self._thread.call(lambda: self._broker.admin)

    @property
    def cluster(self) -> SyncClusterControl:
        """The brokers, topics and leaders, and what can be done to them."""
        return SyncClusterControl(self._broker, self._thread)

    @property
    def faults(self) -> SyncFaults:
        """The fault rules: what the broker does wrong on command."""
        return SyncFaults(self._broker, self._thread)

    @property
    def journal(self) -> SyncJournal:
        """What happened. Raises ConfigError where `sluice.journal.events` is 0."""
        return SyncJournal(self._broker, self._thread)

    @property
    def quotas(self) -> list[QuotasSet]:
        """The quotas that are set now, whoever has set them, those of properties left out."""
        return self._thread.call(lambda: self._broker.quotas)

    def quota(
        self,
        *,
        client_id: str | None = None,
        user: str | None = None,
        produce: float | str | None = None,
        fetch: float | str | None = None,
        request_percentage: float | None = None,
    ) -> SyncQuota:
        """Sets quotas, as Broker.quota does, until what is returned is removed."""
        quota = self._thread.call(
            lambda: self._broker.quota(
                client_id=client_id,
                user=user,
                produce=produce,
                fetch=fetch,
                request_percentage=request_percentage,
            )
        )
        return SyncQuota(quota, self._thread)

    def client(self, client_id: str = CLIENT_ID) -> SyncClient:
        """Puts records into topics and takes them out, where the client is not what the test is about."""
        return SyncClient(self._thread.call(lambda: self._broker.client(client_id)), self._thread)

    @overload
    def wait_for(
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
    def wait_for(self, what: SyncFault, *, times: int = 1, timeout_s: float = WAIT_S) -> int: ...

    @overload
    def wait_for(self, what: Callable[[], _T], *, timeout_s: float = WAIT_S) -> _T: ...

    def wait_for(
        self,
        what: type[_E] | SyncFault | Callable[[], object],
        *,
        where: Callable[[_E], object] | None = None,
        times: int = 1,
        after: int = 0,
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
        timeout_s: float = WAIT_S,
    ) -> object:
        """Returns when something has happened, as Broker.wait_for does; functions are called in the caller's thread."""
        if isinstance(what, SyncFault):
            return self._until(HitsWait(self._journal_if_any, what, times), timeout_s)
        if is_event_type(what):
            filters = Filters(after, client_id, api, broker)
            return self._until(EventsWait(self.journal, what, filters, where, times), timeout_s)
        return self._until(TruthWait(self._journal_if_any, what), timeout_s)

    def run_scenario(self, scenario: "Scenario | PathLike[str] | str") -> "list[StepDone]":
        """Runs a scenario, as Broker.run_scenario does, and returns what was done when it has ended."""
        return self._thread.run(lambda: self._broker.run_scenario(scenario))

    def start_scenario(self, scenario: "Scenario | PathLike[str] | str") -> SyncScenario:
        """Begins a scenario, as Broker.start_scenario does."""
        return SyncScenario(self._thread.call(lambda: self._broker.start_scenario(scenario)), self._thread)

    def _until(self, wait: Wait[_T], timeout_s: float) -> _T:
        clock = self._thread.clock
        deadline_ms = clock.monotonic_ms() + timeout_s * 1000
        while (found := wait.look()) is None:
            self._thread.raise_failure()
            if clock.monotonic_ms() >= deadline_ms:
                raise TimeoutError(wait.told(timeout_s))
            self._thread.pause(LOOK_EVERY_MS)
        return found

    @property
    def _journal_if_any(self) -> SyncJournal | None:
        try:
            return self.journal
        except ConfigError:
            return None
