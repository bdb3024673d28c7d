"""The Broker API for code without an event loop, or with another one; its methods block.

    with SyncBroker(brokers=3) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
        ...
        broker.cluster.stop(1)
        (moved,) = broker.wait_for(LeaderChange)

The broker runs in its own thread (loop_thread.py). Any other thread may call the methods.
"""

from collections.abc import Callable, Collection
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from sluice.embedded.traces.of_broker import note_block, write_trace
from sluice.errors import ArgumentError, WaitTimeoutError
from sluice.journal_events import AnyEvent, Event
from sluice.text.arguments import Count, Duration, Index, checks_arguments

from .assertions.journal_assertions import JournalAssertions
from .assertions.wait_conditions import POLL_INTERVAL_MS, Filters, WaitOptions, wait_condition
from .blocking import Blocking, calls, opens, reads, runs, waits
from .broker import WAIT_S, Broker
from .sync_handles import SyncClient, SyncClusterControl, SyncFault, SyncFaults, SyncJournal, SyncQuota, SyncScenario
from .traces import started
from .traces.started import Position

_T = TypeVar("_T")
_E = TypeVar("_E", bound=Event)


@checks_arguments
class SyncBroker(Blocking[Broker], JournalAssertions):
    """The blocking counterpart of `sluice.Broker`, with the same arguments, state and errors."""

    @runs(Broker)
    def __init__(self) -> None: ...

    def __enter__(self) -> Self:
        self._thread.start()
        started.add(self._target, self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._thread.stop()
        if error is None:
            self._thread.raise_failure()
        note_block(self, error)

    if not TYPE_CHECKING:  # type checkers find this misuse

        async def __aenter__(self) -> None:
            name = type(self).__name__
            raise ArgumentError(f"{name}: expected `with`, got `async with`. Or use sluice.{name.removeprefix('Sync')}")

        async def __aexit__(self, *args: object) -> None:  # Python looks it up before it enters
            pass

    _recorded = calls(Broker._recorded)
    reset = waits(Broker.reset)
    bootstrap = reads(Broker.bootstrap)
    brokers = reads(Broker.brokers)
    admin = reads(Broker.admin)
    quotas = reads(Broker.quotas)
    quota = opens(SyncQuota, Broker.quota)
    client = opens(SyncClient, Broker.client)
    client_config = calls(Broker.client_config)
    run_scenario = waits(Broker.run_scenario)
    start_scenario = opens(SyncScenario, Broker.start_scenario)

    def write_trace(self, path: PathLike[str] | str) -> None:
        write_trace(self, path)

    write_trace.__doc__ = Broker.write_trace.__doc__

    @property
    def _position(self) -> Position | None:
        return self._target._position  # numbers, without waiting for the broker's thread

    @property
    def _has_stopped(self) -> bool:
        return self._target._has_stopped

    @property
    def cluster(self) -> SyncClusterControl:
        """Control of the brokers, topics and leaders."""
        return SyncClusterControl(self._thread.call(lambda: self._target.cluster), self._thread)

    @property
    def faults(self) -> SyncFaults:
        """The fault rules."""
        return SyncFaults(self._thread.call(lambda: self._target.faults), self._thread)

    @property
    def journal(self) -> SyncJournal:
        """The journal. Raises ConfigError if `sluice.journal.events` is 0."""
        return SyncJournal(self._thread.call(lambda: self._target.journal), self._thread)

    @overload
    def wait_for(
        self, what: type[_E], *, where: Callable[[_E], object] | None = None, **options: Unpack[WaitOptions]
    ) -> list[_E]: ...

    @overload
    def wait_for(
        self, what: str, *, where: Callable[[Any], object] | None = None, **options: Unpack[WaitOptions]
    ) -> list[AnyEvent]: ...

    @overload
    def wait_for(self, what: SyncFault, *, times: int = 1, timeout_s: float = WAIT_S) -> int: ...

    @overload
    def wait_for(self, what: Callable[[], _T], *, timeout_s: float = WAIT_S) -> _T: ...

    def wait_for(
        self,
        what: type[_E] | str | SyncFault | Callable[[], object],
        *,
        where: Callable[[_E], object] | None = None,
        times: Count = 1,
        after: Index = 0,
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
        timeout_s: Duration = WAIT_S,
    ) -> object:
        wait = wait_condition(lambda: self.journal, what, where, times, Filters(after, client_id, api, broker))
        clock = self._thread.clock
        deadline_ms = clock.monotonic_ms() + timeout_s * 1000
        while (found := wait.poll()) is None:
            self._thread.raise_failure()
            if clock.monotonic_ms() >= deadline_ms:
                raise WaitTimeoutError(wait.describe_timeout(timeout_s))
            self._thread.pause(POLL_INTERVAL_MS)
        return found

    wait_for.__doc__ = Broker.wait_for.__doc__
