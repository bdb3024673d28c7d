"""An immutable member of a Streams group (KIP-1071). Follows Kafka's StreamsGroupMember and MemberState."""

from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import NamedTuple

Task = tuple[str, int]  # sub-topology id, partition
_NONE: frozenset[Task] = frozenset()
_NO_EPOCHS: Mapping[Task, int] = {}


class Tasks(NamedTuple):
    """Tasks by role: a target assignment, or the tasks that a member reports."""

    active: frozenset[Task] = _NONE
    standby: frozenset[Task] = _NONE
    warmup: frozenset[Task] = _NONE


class AssignedTasks(NamedTuple):
    """Tasks of a member by role, active ones with the member epoch of their assignment."""

    active: Mapping[Task, int] = _NO_EPOCHS
    standby: frozenset[Task] = _NONE
    warmup: frozenset[Task] = _NONE

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def contains_any(self, owned: Tasks) -> bool:
        return any(not ours.isdisjoint(theirs) for ours, theirs in zip(owned, self, strict=True))

    def contains_all(self, owned: Tasks) -> bool:
        return all(task in assigned for tasks, assigned in zip(owned, self, strict=True) for task in tasks)


def by_subtopology(tasks: Collection[Task]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks):
        grouped.setdefault(subtopology_id, []).append(partition)
    return grouped


_NO_TAGS: Mapping[str, str] = {}
_NO_TASKS = AssignedTasks()


class MemberState(IntEnum):
    """The progress towards the target. The numbers are those in records."""

    STABLE = 1
    UNREVOKED_TASKS = 2  # has not confirmed that it gave up tasks
    UNRELEASED_TASKS = 3  # other members have not released tasks of its target
    UNKNOWN = 127  # written by a newer broker

    @classmethod
    def of_record(cls, value: int) -> "MemberState":
        return cls(value) if value in cls._value2member_map_ else cls.UNKNOWN


class Endpoint(NamedTuple):
    """The address of an instance for interactive queries."""

    host: str
    port: int


class StreamsMember(NamedTuple):
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""  # as Java prints an address: "/127.0.0.1"
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""  # of the application instance; its threads are members
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = _NO_TAGS
    assigned: AssignedTasks = _NO_TASKS
    pending_revocation: AssignedTasks = _NO_TASKS

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch

    def at_epoch(self, member_epoch: int) -> "StreamsMember":
        return self._replace(member_epoch=member_epoch, previous_member_epoch=self.member_epoch)
