"""Tasks of Streams groups and their assignments. Follows Kafka's TasksTuple and TasksTupleWithEpochs."""

from collections.abc import Collection, Mapping
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
