"""The reconciliation of a member with its target assignment. Follows Kafka's CurrentAssignmentBuilder.

As in consumer groups, a member first gives up tasks, in its old epoch, and then moves to the target's epoch and gets
tasks as soon as they are free. An active task has one owner in the group. Members are threads of a process and share
its state directory, so a process has a task in one role only. A member changes the role of its own task in one step:

    active to standby, standby to warm-up, warm-up to standby   at once
    standby or warm-up to active                                when no process owns the active task

Member states:

    Stable           in the target's epoch, with its whole target
    UnrevokedTasks   in its old epoch, with tasks to give up within the rebalance timeout
    UnreleasedTasks  in the target's epoch, without the tasks that others have not released
"""

from collections.abc import Callable, Set
from typing import NamedTuple

from .member import AssignedTasks, MemberState, StreamsMember, Task, Tasks


class Goal(NamedTuple):
    epoch: int
    target: Tasks
    active_process: Callable[[Task], str | None]  # that owns, or may own, the active task
    standby_processes: Callable[[Task], Set[str]]
    warmup_processes: Callable[[Task], Set[str]]


def reconcile(member: StreamsMember, goal: Goal, owned: Tasks | None) -> StreamsMember:
    """Move a member, which reports the `owned` tasks, one step towards its target."""
    if member.is_reconciled_to(goal.epoch):
        return member
    if member.state is MemberState.UNREVOKED_TASKS:
        if _may_own(member.pending_revocation, owned):
            return member
        return _next_assignment(member, member.member_epoch + 1, goal, owned)
    return _next_assignment(member, member.member_epoch, goal, owned)


def _next_assignment(member: StreamsMember, revoking_epoch: int, goal: Goal, owned: Tasks | None) -> StreamsMember:
    has, target = member.assigned, goal.target
    free = _free_tasks(member, goal)
    active = {task: epoch for task, epoch in has.active.items() if task in target.active}
    # A task that will be active keeps its role until then.
    lost = AssignedTasks(
        {task: epoch for task, epoch in has.active.items() if task not in target.active},
        has.standby - target.standby - target.active - free.warmup,
        has.warmup - target.warmup - target.active - free.standby,
    )
    if lost and _may_own(lost, owned):
        standby = has.standby & (target.standby | target.active) | free.standby & (has.active.keys() | has.warmup)
        warmup = has.warmup & (target.warmup | target.active) | free.warmup & has.standby
        return member.at_epoch(revoking_epoch)._replace(
            state=MemberState.UNREVOKED_TASKS, assigned=AssignedTasks(active, standby, warmup), pending_revocation=lost
        )
    assigned = AssignedTasks(
        active | dict.fromkeys(sorted(free.active), goal.epoch),
        has.standby & (target.standby | target.active - free.active) | free.standby,
        has.warmup & (target.warmup | target.active - free.active) | free.warmup,
    )
    has_target = assigned.contains_all(target)
    return member.at_epoch(goal.epoch)._replace(
        state=MemberState.STABLE if has_target else MemberState.UNRELEASED_TASKS,
        assigned=assigned,
        pending_revocation=AssignedTasks(),
    )


def _free_tasks(member: StreamsMember, goal: Goal) -> Tasks:
    """Return the missing tasks of the target that the member can have now."""
    has, target, mine = member.assigned, goal.target, member.process_id

    def runs_elsewhere(task: Task) -> bool:
        return goal.active_process(task) == mine and task not in has.active

    def is_standby_elsewhere(task: Task) -> bool:
        return mine in goal.standby_processes(task) and task not in has.standby

    def is_warmup_elsewhere(task: Task) -> bool:
        return mine in goal.warmup_processes(task) and task not in has.warmup

    return Tasks(
        frozenset(
            task
            for task in target.active - has.active.keys()
            if goal.active_process(task) is None and not is_standby_elsewhere(task) and not is_warmup_elsewhere(task)
        ),
        frozenset(
            task
            for task in target.standby - has.standby
            if not runs_elsewhere(task) and mine not in goal.standby_processes(task) and not is_warmup_elsewhere(task)
        ),
        frozenset(
            task
            for task in target.warmup - has.warmup
            if goal.active_process(task) != mine
            and not is_standby_elsewhere(task)
            and mine not in goal.warmup_processes(task)
        ),
    )


def _may_own(lost: AssignedTasks, owned: Tasks | None) -> bool:
    return owned is None or lost.contains_any(owned)
