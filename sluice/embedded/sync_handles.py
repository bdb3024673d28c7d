"""The blocking handles of a SyncBroker, for objects in the broker's thread."""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Unpack, overload

from sluice.broker.journal.reader import POLL_MS, JournalReader
from sluice.journal_events import AnyEvent
from sluice.text.arguments import Index

from .blocking import Blocking, calls, opens, reads, waits
from .client import LocalClient
from .cluster_control import ClusterControl
from .fault_control import LocalFault, LocalFaults, RuleFields
from .quota_control import LocalQuota
from .scenario_control import LocalScenario

if TYPE_CHECKING:
    from sluice.broker.faults.actions import AnyAction
    from sluice.broker.faults.rule import Rule


class SyncClusterControl(Blocking[ClusterControl]):
    stop = waits(ClusterControl.stop)
    start = waits(ClusterControl.start)
    isolate = waits(ClusterControl.isolate)
    rejoin = waits(ClusterControl.rejoin)
    move_leader = waits(ClusterControl.move_leader)
    elect = waits(ClusterControl.elect)
    create_topic = waits(ClusterControl.create_topic)
    partition = calls(ClusterControl.partition)


class SyncFault(Blocking[LocalFault]):
    id = reads(LocalFault.id)
    hits = reads(LocalFault.hits)
    matched = reads(LocalFault.matched)
    state = reads(LocalFault.state)
    enabled = reads(LocalFault.enabled)
    problem = reads(LocalFault.problem)
    held = reads(LocalFault.held)
    release = calls(LocalFault.release)
    remove = calls(LocalFault.remove)
    __exit__ = calls(LocalFault.__exit__)

    def __enter__(self) -> "SyncFault":
        return self


class SyncFaults(Blocking[LocalFaults]):
    @overload
    def add(self, rule: "Rule | Mapping[str, object]", /) -> SyncFault: ...

    @overload
    def add(self, rule: "AnyAction | str", /, **fields: Unpack[RuleFields]) -> SyncFault: ...

    def add(self, rule: "AnyAction | Rule | Mapping[str, object] | str", /, **fields: Unpack[RuleFields]) -> SyncFault:
        return SyncFault(self._thread.call(lambda: self._target.add(rule, **fields)), self._thread)  # type: ignore[arg-type]  # one of the two

    add.__doc__ = LocalFaults.add.__doc__

    list = opens(lambda faults, thread: [SyncFault(each, thread) for each in faults], LocalFaults.list)
    remove = calls(LocalFaults.remove)
    clear = calls(LocalFaults.clear)


class SyncJournal(Blocking[JournalReader]):
    last_seq = reads(JournalReader.last_seq)
    events = calls(JournalReader.events)
    requests = calls(JournalReader.requests)

    def follow(
        self,
        *,
        after: Index | None = None,
        kind: str | Collection[str] = (),
        client_id: str | Collection[str] = (),
        api: str | Collection[str] = (),
        broker: int | Collection[int] = (),
    ) -> Iterator[AnyEvent]:
        position = self.last_seq if after is None else after
        while True:
            is_last, last = self._thread.has_ended, self.last_seq
            found = self.events(after=position, kind=kind, client_id=client_id, api=api, broker=broker)
            yield from found
            position = max(last, found[-1].seq) if found else last
            if is_last:
                return
            self._thread.pause(POLL_MS)

    follow.__doc__ = JournalReader.follow.__doc__


class SyncQuota(Blocking[LocalQuota]):
    remove = calls(LocalQuota.remove)
    __exit__ = calls(LocalQuota.__exit__)

    def __enter__(self) -> "SyncQuota":
        return self


class SyncScenario(Blocking[LocalScenario]):
    done = reads(LocalScenario.done)
    steps = reads(LocalScenario.steps)
    wait = waits(LocalScenario.wait)
    stop = calls(LocalScenario.stop)


class SyncClient(Blocking[LocalClient]):
    send = waits(LocalClient.send)
    receive = waits(LocalClient.receive)
