"""One reconciliation step of a Streams group member."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sluice.broker.coordinator.group.streams.current_assignment import Goal, reconcile
from sluice.broker.coordinator.group.streams.member import (
    AssignedTasks,
    MemberState,
    StreamsMember,
    Task,
    Tasks,
    by_subtopology,
)

GOLDEN = Path(__file__).parent / "golden" / "kafka_current_assignments.txt"
A, B, C = ("0", 0), ("0", 1), ("1", 0)
STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState
OLD, NEW = 5, 8  # epochs
ME, OTHER = "my process", "other process"


def tasks(active: str = "", standby: str = "", warmup: str = "") -> Tasks:
    return Tasks(*(frozenset({"A": A, "B": B, "C": C}[one] for one in role) for role in (active, standby, warmup)))


def assigned(active: str = "", standby: str = "", warmup: str = "", new: str = "") -> AssignedTasks:
    """Return assigned tasks: `active` ones since the old epoch, `new` ones since the new epoch."""
    before, now = tasks(active, standby, warmup), tasks(new)
    return AssignedTasks(dict.fromkeys(before.active, OLD) | dict.fromkeys(now.active, NEW), *before[1:])


def member(state: MemberState = STABLE, epoch: int = OLD, **fields: Any) -> StreamsMember:
    return StreamsMember("m", epoch, state=state, process_id=ME, **fields)


def step(
    before: StreamsMember,
    target: Tasks,
    owned: Tasks | None = None,
    *,
    epoch: int = NEW,
    active: Mapping[Task, str] | None = None,
    standby: Mapping[Task, str] | None = None,
    warmup: Mapping[Task, str] | None = None,
) -> StreamsMember:
    """Reconcile in a group with these processes and those of the member."""
    has = [*zip(before.assigned, before.pending_revocation, strict=True)]
    owners = [{task: ME for held in role for task in held} | dict(others or {})
              for role, others in zip(has, (active, standby, warmup), strict=True)]  # fmt: skip
    goal = Goal(
        epoch,
        target,
        owners[0].get,
        lambda task: {owners[1][task]} if task in owners[1] else set(),
        lambda task: {owners[2][task]} if task in owners[2] else set(),
    )
    return reconcile(before, goal, owned)


def after(state: MemberState, epoch: int, has: AssignedTasks, lost: AssignedTasks | None = None) -> StreamsMember:
    gone = AssignedTasks() if lost is None else lost
    return member(state, epoch, previous_member_epoch=OLD, assigned=has, pending_revocation=gone)


@pytest.mark.parametrize(
    ("before", "target", "owned", "others", "expected"),
    [
        pytest.param(member(assigned=assigned("A")), tasks("B"), None, {"epoch": OLD}, member(assigned=assigned("A")),
                     id="a stable member in the target's epoch keeps its tasks"),
        pytest.param(member(), tasks("A", "B", "C"), None, {},
                     after(STABLE, NEW, assigned("", "B", "C", new="A")), id="free tasks are assigned at once"),
        pytest.param(member(assigned=assigned("A")), tasks("AB"), None, {"active": {B: OTHER}},
                     after(UNRELEASED, NEW, assigned("A")), id="an active task of another process is awaited"),
        pytest.param(member(assigned=assigned("A")), tasks("AB"), None, {"active": {B: ME}},
                     after(UNRELEASED, NEW, assigned("A")), id="an active task of another thread is awaited"),
        pytest.param(member(), tasks("", "A"), None, {"standby": {A: OTHER}},
                     after(STABLE, NEW, assigned("", "A")), id="another process may have the same standby task"),
        pytest.param(member(), tasks("", "A"), None, {"standby": {A: ME}}, after(UNRELEASED, NEW, assigned()),
                     id="a standby task of another thread is awaited"),
        pytest.param(member(), tasks("", "A"), None, {"active": {A: ME}}, after(UNRELEASED, NEW, assigned()),
                     id="a standby task is awaited while another thread has it active"),
        pytest.param(member(), tasks("A"), None, {"warmup": {A: ME}}, after(UNRELEASED, NEW, assigned()),
                     id="an active task is awaited while another thread warms it up"),
        pytest.param(member(), tasks("A"), None, {"warmup": {A: OTHER}}, after(STABLE, NEW, assigned(new="A")),
                     id="an active task does not wait for a warm-up of another process"),
        pytest.param(member(), tasks("", "", "A"), None, {"active": {A: ME}}, after(UNRELEASED, NEW, assigned()),
                     id="a warm-up task is awaited while another thread has it active"),
        pytest.param(member(assigned=assigned("AB", "C")), tasks("A"), tasks("AB", "C"), {},
                     after(UNREVOKED, OLD, assigned("A"), assigned("B", "C")),
                     id="tasks outside the target are revoked in the old epoch"),
        pytest.param(member(assigned=assigned("AB")), tasks("AC"), None, {},
                     after(UNREVOKED, OLD, assigned("A"), assigned("B")),
                     id="no new tasks before the old ones are revoked"),
        pytest.param(member(assigned=assigned("AB")), tasks("AC"), tasks("A"), {},
                     after(STABLE, NEW, assigned("A", new="C")), id="tasks that the member does not own are gone"),
        pytest.param(member(UNREVOKED, assigned=assigned("A"), pending_revocation=assigned("B")), tasks("A"), None, {},
                     member(UNREVOKED, assigned=assigned("A"), pending_revocation=assigned("B")),
                     id="revocation is not confirmed without owned tasks"),
        pytest.param(member(UNREVOKED, assigned=assigned("A"), pending_revocation=assigned("B")), tasks("A"),
                     tasks("AB"), {}, member(UNREVOKED, assigned=assigned("A"), pending_revocation=assigned("B")),
                     id="revocation is not confirmed while the member owns a task"),
        pytest.param(member(UNREVOKED, assigned=assigned("A"), pending_revocation=assigned("B")), tasks("AC"),
                     tasks("A"), {}, after(STABLE, NEW, assigned("A", new="C")),
                     id="after revocation the member gets its target"),
        pytest.param(member(UNREVOKED, assigned=assigned("AC"), pending_revocation=assigned("B")), tasks("A"),
                     tasks("AC"), {}, after(UNREVOKED, OLD + 1, assigned("A"), assigned("C")),
                     id="after revocation a later target may revoke more, in the next epoch"),
        pytest.param(member(UNRELEASED, NEW, assigned=assigned("A")), tasks("AB"), None, {},
                     member(STABLE, NEW, previous_member_epoch=NEW, assigned=assigned("A", new="B")),
                     id="a released task is assigned"),
        pytest.param(member(UNRELEASED, NEW, assigned=assigned("A")), tasks("AB"), None, {"active": {B: OTHER}},
                     member(UNRELEASED, NEW, previous_member_epoch=NEW, assigned=assigned("A")),
                     id="an unreleased task is still awaited"),
        pytest.param(member(assigned=assigned("", "A")), tasks("A"), None, {}, after(STABLE, NEW, assigned(new="A")),
                     id="a standby task becomes active without revocation"),
        pytest.param(member(assigned=assigned("", "A")), tasks("A"), None, {"active": {A: OTHER}},
                     after(UNRELEASED, NEW, assigned("", "A")),
                     id="a standby task stays until the active task is free"),
        pytest.param(member(assigned=assigned("B", "A")), tasks("A"), None, {},
                     after(UNREVOKED, OLD, assigned("", "A"), assigned("B")),
                     id="a standby task stays while another task is revoked"),
        pytest.param(member(assigned=assigned("A")), tasks("", "A"), tasks("A"), {},
                     after(UNREVOKED, OLD, assigned("", "A"), assigned("A")),
                     id="an active task becomes standby while it is revoked"),
        pytest.param(member(assigned=assigned("", "A", "B")), tasks("", "B", "A"), tasks("", "A", "B"), {},
                     after(STABLE, NEW, assigned("", "B", "A")), id="standby and warm-up change roles at once"),
        pytest.param(member(assigned=assigned("C", "A")), tasks("", "", "A"), None, {},
                     after(UNREVOKED, OLD, assigned("", "", "A"), assigned("C")),
                     id="standby becomes warm-up while another task is revoked"),
        pytest.param(member(assigned=assigned("", "", "A")), tasks("A"), None, {},
                     after(STABLE, NEW, assigned(new="A")), id="a warm-up task becomes active"),
        pytest.param(member(UNKNOWN), tasks("A"), tasks(), {}, after(STABLE, NEW, assigned(new="A")),
                     id="a member in an unknown state without tasks starts anew"),
    ],
)  # fmt: skip
def test_one_step(
    before: StreamsMember, target: Tasks, owned: Tasks | None, others: dict[str, Any], expected: StreamsMember
) -> None:
    assert step(before, target, owned, **others) == expected


def parsed(text: str) -> dict[Task, str]:
    """Parse tasks, with the values behind them."""
    parts = [] if text in ("-", "null") else [one.split(":") for one in text.split(",")]
    return {(one[0], int(one[1])): "".join(one[2:]) for one in parts}


def parsed_assigned(active: str, standby: str, warmup: str) -> AssignedTasks:
    epochs = {task: int(epoch) for task, epoch in parsed(active).items()}
    return AssignedTasks(epochs, frozenset(parsed(standby)), frozenset(parsed(warmup)))


def processes(text: str) -> Callable[[Task], set[str]]:
    """Parse processes by task; a task may have several."""
    parts = [] if text == "-" else [one.split(":") for one in text.split(",")]
    return lambda task: {process for name, index, process in parts if (name, int(index)) == task}


@pytest.mark.parametrize("line", [line for line in GOLDEN.read_text().splitlines() if not line.startswith("#")])
def test_one_step_is_that_of_kafka(line: str) -> None:
    before, after = (text.split() for text in line.split(" => "))
    known = StreamsMember(
        "m",
        int(before[1]),
        state=MemberState(int(before[0])),
        process_id="p",
        assigned=parsed_assigned(*before[3:6]),
        pending_revocation=parsed_assigned(*before[6:9]),
    )
    target, owned = (Tasks(*(frozenset(parsed(one)) for one in before[at : at + 3])) for at in (9, 12))
    active, standby, warmup = map(processes, before[15:18])
    goal = Goal(int(before[2]), target, lambda task: next(iter(active(task)), None), standby, warmup)
    expected = known._replace(
        state=MemberState(int(after[0])),
        member_epoch=int(after[1]),
        previous_member_epoch=int(after[2]),
        assigned=parsed_assigned(*after[3:6]),
        pending_revocation=parsed_assigned(*after[6:9]),
    )
    assert reconcile(known, goal, None if before[12] == "null" else owned) == expected


def test_states_of_records() -> None:
    assert [MemberState.of_record(number) for number in (1, 2, 3, 9, 127)] == [STABLE, UNREVOKED, UNRELEASED, UNKNOWN,
                                                                               UNKNOWN]  # fmt: skip


def test_tasks_are_grouped_in_order() -> None:
    assert by_subtopology({C, B, A}) == {"0": [0, 1], "1": [0]}
