"""What a SyncBroker has: the members of a Broker that have members of their own, blocking.

Each hands what it is asked to the thread in which the broker lives.
"""

from collections.abc import Collection, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Unpack, overload

from sluice.broker.journal.reader import POLL_MS
from sluice.broker.metadata.topic import PartitionState
from sluice.journal_events import AnyEvent, Request

from .broker import Broker
from .client import LocalClient
from .fault_control import LocalFault, RuleFields, raise_problem
from .loop_thread import BrokerThread
from .quota_control import LocalQuota
from .scenario_control import LocalScenario

if TYPE_CHECKING:
    from sluice.broker.faults.actions import AnyAction
    from sluice.broker.faults.rule import Rule
    from sluice.broker.scenarios.report import StepDone
    from sluice.client.consumer.consumer import ConsumerRecord
    from sluice.client.producer.producer import RecordMetadata


class SyncClusterControl:
    """ClusterControl, blocking."""

    def __init__(self, broker: Broker, thread: BrokerThread) -> None:
        self._cluster = thread.call(lambda: broker.cluster)
        self._thread = thread

    def stop(self, node_id: int, *, controlled: bool = True) -> None:
        """Stops a broker, after it has given up what it leads; not `controlled`, it is gone as if it was killed."""
        self._thread.run(lambda: self._cluster.stop(node_id, controlled=controlled))

    def start(self, node_id: int) -> None:
        """Starts a broker that was stopped, on the ports that it had."""
        self._thread.run(lambda: self._cluster.start(node_id))

    def isolate(self, node_id: int) -> None:
        """Clients reach the broker, the controller and the other brokers do not."""
        self._thread.run(lambda: self._cluster.isolate(node_id))

    def rejoin(self, node_id: int) -> None:
        """Ends the isolation of a broker."""
        self._thread.run(lambda: self._cluster.rejoin(node_id))

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Makes a replica that is in sync the leader."""
        self._thread.run(lambda: self._cluster.move_leader(topic, partition, node_id))

    def elect(self, topic: str, partition: int, election: Literal["preferred", "unclean"] = "preferred") -> None:
        """Holds an election; nothing changes where none is needed."""
        self._thread.run(lambda: self._cluster.elect(topic, partition, election))

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        *,
        replication_factor: int = -1,
        assignments: Mapping[int, Collection[int]] | None = None,
        config: Mapping[str, str | float] | None = None,
    ) -> None:
        """Creates a topic, as ClusterControl.create_topic does."""
        self._thread.run(
            lambda: self._cluster.create_topic(
                name, partitions, replication_factor=replication_factor, assignments=assignments, config=config
            )
        )

    def partition(self, topic: str, partition: int) -> PartitionState:
        """Replicas, ISR, leader (-1: none) and epochs of a partition, as they are now."""
        return self._thread.call(lambda: self._cluster.partition(topic, partition))


class SyncFaults:
    """LocalFaults, blocking."""

    def __init__(self, broker: Broker, thread: BrokerThread) -> None:
        self._faults = thread.call(lambda: broker.faults)
        self._thread = thread

    @overload
    def add(self, rule: "Rule | Mapping[str, object]", /) -> "SyncFault": ...

    @overload
    def add(self, rule: "AnyAction | str", /, **fields: Unpack[RuleFields]) -> "SyncFault": ...

    def add(
        self, rule: "AnyAction | Rule | Mapping[str, object] | str", /, **fields: Unpack[RuleFields]
    ) -> "SyncFault":
        """Puts a rule in force, as LocalFaults.add does."""
        return SyncFault(self._thread.call(lambda: self._faults.add(rule, **fields)), self._thread)  # type: ignore[arg-type]  # one of the two

    def list(self) -> "list[SyncFault]":
        """Those that were added and not removed, in that order."""
        return [SyncFault(fault, self._thread) for fault in self._thread.call(self._faults.list)]

    def remove(self, fault_id: str) -> None:
        """Ends a rule by its id. Raises FaultError where there is none."""
        self._thread.call(lambda: self._faults.remove(fault_id))

    def clear(self) -> None:
        """Removes all."""
        self._thread.call(self._faults.clear)


class SyncFault:
    """A LocalFault, blocking."""

    def __init__(self, fault: LocalFault, thread: BrokerThread) -> None:
        self._fault = fault
        self._thread = thread

    @property
    def id(self) -> str:
        """As it was given, or fault-1, fault-2 and so on."""
        return self._fault.id

    @property
    def hits(self) -> int:
        """How many requests or connections it has hit; of a state, on how many brokers it is."""
        return self._fault.hits

    @property
    def matched(self) -> int:
        """How many matched, whether it was their turn to be hit or not."""
        return self._fault.matched

    @property
    def enabled(self) -> bool:
        """False: something went wrong with it, which ended it."""
        return self._fault.enabled

    @property
    def problem(self) -> str:
        """What that was, else empty."""
        return self._fault.problem

    def remove(self) -> None:
        """Ends it: what waits because of it goes on, and what it brought about is undone. Once is enough."""
        self._thread.call(self._fault.remove)

    def __enter__(self) -> "SyncFault":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As LocalFault's."""
        self.remove()
        if error is None:
            raise_problem(self.id, self.problem)


class SyncJournal:
    """What a JournalReader reads, blocking."""

    def __init__(self, broker: Broker, thread: BrokerThread) -> None:
        self._reader = thread.call(lambda: broker.journal)
        self._thread = thread

    @property
    def last_seq(self) -> int:
        """Of the newest event; 0: there was none yet."""
        return self._reader.last_seq

    def events(
        self,
        *,
        after: int = 0,
        kind: str | Collection[str] = (),
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
    ) -> list[AnyEvent]:
        """All events with a `seq` above `after`, oldest first. Raises ValueError for what no event can be."""
        return self._thread.call(
            lambda: self._reader.events(after=after, kind=kind, client_id=client_id, api=api, broker=broker)
        )

    def requests(
        self,
        *,
        after: int = 0,
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
    ) -> list[Request]:
        """The requests among them; where some may have been lost, see `events`."""
        return self._thread.call(
            lambda: self._reader.requests(after=after, client_id=client_id, api=api, broker=broker)
        )

    def follow(
        self,
        *,
        after: int | None = None,
        kind: str | Collection[str] = (),
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
    ) -> Iterator[AnyEvent]:
        """The events with a `seq` above `after` as they come, until the broker ends; None: those from now on."""
        position = self.last_seq if after is None else after
        while True:
            is_last, last = self._thread.has_ended, self.last_seq
            found = self.events(after=position, kind=kind, client_id=client_id, api=api, broker=broker)
            yield from found
            position = max(last, found[-1].seq) if found else last
            if is_last:
                return
            self._thread.pause(POLL_MS)


class SyncQuota:
    """A LocalQuota, blocking."""

    def __init__(self, quota: LocalQuota, thread: BrokerThread) -> None:
        self._quota = quota
        self._thread = thread

    def remove(self) -> None:
        """What was set before holds again; the second time nothing is done."""
        self._thread.call(self._quota.remove)

    def __enter__(self) -> "SyncQuota":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class SyncScenario:
    """A LocalScenario, blocking."""

    def __init__(self, scenario: LocalScenario, thread: BrokerThread) -> None:
        self._scenario = scenario
        self._thread = thread

    @property
    def done(self) -> bool:
        """Whether it has come to its end, or was stopped, and brokers, quotas and configs are again as before."""
        return self._scenario.done

    @property
    def steps(self) -> "list[StepDone]":
        """What was done so far, and for what could not be the reason."""
        return self._thread.call(lambda: self._scenario.steps)

    def wait(self) -> "list[StepDone]":
        """The same, of all of it, when it is done."""
        return self._thread.run(self._scenario.wait)

    def stop(self) -> None:
        """Ends it before its time; once is enough."""
        self._thread.call(self._scenario.stop)


class SyncClient:
    """A LocalClient, blocking."""

    def __init__(self, client: LocalClient, thread: BrokerThread) -> None:
        self._client = client
        self._thread = thread

    def send(
        self, topic: str, *values: bytes | None, key: bytes | None = None, partition: int | None = None
    ) -> "list[RecordMetadata]":
        """Where each of these records was written, as LocalClient.send has it."""
        return self._thread.run(lambda: self._client.send(topic, *values, key=key, partition=partition))

    def receive(self, topic: str, count: int = 1, *, timeout_s: float = 10.0) -> "list[ConsumerRecord]":
        """The first `count` records of a topic, as LocalClient.receive has it."""
        return self._thread.run(lambda: self._client.receive(topic, count, timeout_s=timeout_s))
