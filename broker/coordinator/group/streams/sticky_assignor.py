"""The `sticky` assignor of tasks. Follows Kafka's StickyTaskAssignor and ProcessState.

A member keeps tasks of a kind up to a quota: the tasks divided by the members. When a member reaches the quota, it is
computed again without that member. The load of a process is its tasks per member.

    1. Active tasks stay with their members, up to the quota of active tasks.
    2. Others go to members with a standby task or the changelog offsets of the task, up to the same quota.
    3. The rest goes to the process with the least load, and there to the member with the fewest tasks.
    4. Standby tasks go to the previous active member, then to previous standby members, up to the quota of all tasks,
       then to the process with the least load. A process has a task only once; replicas without a process are left out.

As in Kafka 4.4, racks and client tags have no influence, and no warm-up tasks are assigned.
"""

import heapq
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from .member import Task, Tasks


class MemberSpec(NamedTuple):
    process_id: str
    active: Collection[Task] = ()
    standby: Collection[Task] = ()
    offsets: Mapping[Task, int] = {}  # sums of the changelog offsets on the member's disk


class SubtopologySpec(NamedTuple):
    task_count: int
    is_stateful: bool = False


class _Candidate(NamedTuple):
    is_standby: bool
    offset_sum: int
    member_id: str


class _Process:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.tasks: set[Task] = set()

    @property
    def load(self) -> float:
        return len(self.tasks) / len(self.counts)

    def least_loaded_member(self) -> str:
        return min(self.counts, key=self.counts.__getitem__)


class _Quota:
    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.per_member = self._share()

    def count(self, tasks_of_member: int) -> None:
        """Count a member, which no longer shares the tasks if it has reached the quota."""
        if tasks_of_member == self.per_member:
            self._members -= 1
            self._tasks -= tasks_of_member
            self.per_member = self._share()

    def _share(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0


def assign(
    members: Mapping[str, MemberSpec], subtopologies: Mapping[str, SubtopologySpec], standby_replicas: int
) -> dict[str, Tasks]:
    """Return the target of each member. `members` must not be empty."""
    return _Assignment(members, subtopologies, standby_replicas).assign()


class _Assignment:
    def __init__(
        self, members: Mapping[str, MemberSpec], subtopologies: Mapping[str, SubtopologySpec], standby_replicas: int
    ) -> None:
        self._replicas = standby_replicas
        self._active = [
            (name, partition) for name, one in sorted(subtopologies.items()) for partition in range(one.task_count)
        ]
        self._stateful = [task for task in self._active if subtopologies[task[0]].is_stateful]
        self._active_quota = _Quota(len(self._active), len(members))
        all_tasks = len(self._active) + standby_replicas * len(self._stateful)
        self._task_quota = _Quota(all_tasks, len(members))
        self._processes: dict[str, _Process] = {}
        self._process_of: dict[str, _Process] = {}
        for member_id, member in members.items():
            process = self._processes.setdefault(member.process_id, _Process())
            process.counts[member_id] = 0
            self._process_of[member_id] = process
        self._previous_active = {task: member_id for member_id, member in members.items() for task in member.active}
        self._previous_standby = _previous_standby(members, frozenset(self._active))
        self._assigned: dict[str, tuple[set[Task], set[Task]]] = {member_id: (set(), set()) for member_id in members}

    def assign(self) -> dict[str, Tasks]:
        self._assign_active()
        if self._replicas:
            self._assign_standby()
        return {
            member_id: Tasks(frozenset(active), frozenset(standby))
            for member_id, (active, standby) in self._assigned.items()
        }

    def _assign_active(self) -> None:
        tasks = sorted(self._active, key=lambda task: (task[1], task[0]))
        tasks = [task for task in tasks if not self._keep_active(self._previous_active.get(task), task)]
        tasks = [task for task in tasks if not self._keep_active(self._least_loaded(task), task)]
        queue = self._queue()
        for task in sorted(tasks):
            _, order, process = queue[0]
            self._add_active(process.least_loaded_member(), task)
            heapq.heapreplace(queue, (process.load, order, process))

    def _keep_active(self, member_id: str | None, task: Task) -> bool:
        if member_id is None or self._count(member_id) >= self._active_quota.per_member:
            return False
        self._add_active(member_id, task)
        return True

    def _add_active(self, member_id: str, task: Task) -> None:
        self._assigned[member_id][0].add(task)
        self._active_quota.count(self._add(member_id, task))

    def _add(self, member_id: str, task: Task) -> int:
        process = self._process_of[member_id]
        process.tasks.add(task)
        process.counts[member_id] += 1
        self._task_quota.count(process.counts[member_id])
        return process.counts[member_id]

    def _count(self, member_id: str) -> int:
        return self._process_of[member_id].counts[member_id]

    def _assign_standby(self) -> None:
        remaining: list[tuple[Task, int]] = []
        for task in sorted(self._stateful, key=lambda task: (task[1], task[0]), reverse=True):
            for replica in range(self._replicas):
                if not self._keep_standby(task):
                    remaining.append((task, self._replicas - replica))
                    break
        queue = self._queue()
        for task, replicas in sorted(remaining, reverse=True):
            for _ in range(replicas):
                if not self._add_to_least_loaded(queue, task):
                    break  # every process has the task

    def _keep_standby(self, task: Task) -> bool:
        for member_id in (self._previous_active.get(task), self._least_loaded(task, without_task=True)):
            if member_id is None or task in self._process_of[member_id].tasks:
                continue
            if self._count(member_id) < self._task_quota.per_member:
                self._add_standby(member_id, task)
                return True
        return False

    def _add_standby(self, member_id: str, task: Task) -> None:
        self._assigned[member_id][1].add(task)
        self._add(member_id, task)

    def _add_to_least_loaded(self, queue: list[tuple[float, int, _Process]], task: Task) -> bool:
        skipped = []
        while queue and task in queue[0][2].tasks:
            skipped.append(heapq.heappop(queue))
        found = bool(queue)
        if found:
            _, order, process = queue[0]
            self._add_standby(process.least_loaded_member(), task)
            heapq.heapreplace(queue, (process.load, order, process))
        for entry in skipped:
            heapq.heappush(queue, entry)
        return found

    def _least_loaded(self, task: Task, *, without_task: bool = False) -> str | None:
        """Return the first previous standby member, unless a later one has a lower process load and fewer tasks."""
        best, least_load, least_count = None, float("inf"), float("inf")
        for member_id in self._previous_standby.get(task, ()):
            process = self._process_of[member_id]
            if without_task and task in process.tasks:
                continue
            load, count = process.load, process.counts[member_id]
            if best is None or (load < least_load and count < least_count):
                best, least_load, least_count = member_id, load, count
        return best

    def _queue(self) -> list[tuple[float, int, _Process]]:
        queue = [(process.load, order, process) for order, process in enumerate(self._processes.values())]
        heapq.heapify(queue)
        return queue


def _previous_standby(members: Mapping[str, MemberSpec], tasks: frozenset[Task]) -> dict[Task, list[str]]:
    """Return the members that can take over each task: standby members first, then by offsets."""
    found: dict[Task, list[_Candidate]] = {}
    for member_id, member in members.items():
        for task in member.standby:
            found.setdefault(task, []).append(_Candidate(True, member.offsets.get(task, 0), member_id))
        for task in member.offsets.keys() & tasks:  # a client may report others
            if task not in member.standby:
                found.setdefault(task, []).append(_Candidate(False, member.offsets[task], member_id))
    return {task: _in_order(candidates) for task, candidates in found.items()}


def _in_order(candidates: Iterable[_Candidate]) -> list[str]:
    return [one.member_id for one in sorted(candidates, key=lambda one: (not one.is_standby, -one.offset_sum))]
