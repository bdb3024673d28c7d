"""The sticky assignor of tasks: cases as in Kafka's tests, and invariants of any assignment."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.coordinator.group.streams.member import Task, Tasks
from sluice.broker.coordinator.group.streams.sticky_assignor import MemberSpec, SubtopologySpec, assign

STATEFUL = SubtopologySpec(3, is_stateful=True)


def tasks(*numbers: int, name: str = "0") -> frozenset[Task]:
    return frozenset((name, number) for number in numbers)


def counts(assigned: Mapping[str, Tasks]) -> list[tuple[int, int]]:
    return [(len(one.active), len(one.standby)) for one in assigned.values()]


@pytest.mark.parametrize(
    ("members", "subtopologies", "replicas", "expected"),
    [
        pytest.param({m: MemberSpec(m) for m in "abc"}, {"0": SubtopologySpec(3)}, 0, [(1, 0)] * 3, id="one task each"),
        pytest.param({"a": MemberSpec("p"), "b": MemberSpec("q"), "c": MemberSpec("q")}, {"0": SubtopologySpec(6)}, 0,
                     [(2, 0)] * 3, id="processes by their threads"),
        pytest.param({m: MemberSpec(m) for m in "abcd"}, {"0": SubtopologySpec(2)}, 0, [(1, 0)] * 2 + [(0, 0)] * 2,
                     id="more members than tasks"),
        pytest.param({m: MemberSpec(m) for m in "abc"}, {"0": STATEFUL}, 1, [(1, 1)] * 3, id="a standby each"),
        pytest.param({m: MemberSpec(m) for m in "abc"}, {"0": STATEFUL}, 2, [(1, 2)] * 3, id="two standbys each"),
        pytest.param({m: MemberSpec("p") for m in "ab"}, {"0": STATEFUL}, 1, [(2, 0), (1, 0)],
                     id="no standby in the process of the active task"),
        pytest.param({"a": MemberSpec("a"), "b": MemberSpec("b")}, {"0": SubtopologySpec(4)}, 1, [(2, 0)] * 2,
                     id="no standby without state"),
    ],
)  # fmt: skip
def test_balanced_assignment(
    members: dict[str, MemberSpec],
    subtopologies: dict[str, SubtopologySpec],
    replicas: int,
    expected: list[tuple[int, int]],
) -> None:
    assert counts(assign(members, subtopologies, replicas)) == expected


@pytest.mark.parametrize(
    ("members", "replicas", "active", "standby"),
    [
        pytest.param({"a": MemberSpec("a", tasks(0, 2)), "b": MemberSpec("b", tasks(1))}, 0,
                     [tasks(0, 2), tasks(1)], [tasks()] * 2, id="active tasks stay"),
        pytest.param({"a": MemberSpec("a", tasks(0, 1, 2)), "b": MemberSpec("b")}, 0, [tasks(0, 1), tasks(2)],
                     [tasks()] * 2, id="a new member gets the tasks above the quota"),
        pytest.param({"a": MemberSpec("a"), "b": MemberSpec("b", tasks(1), tasks(2)), "c": MemberSpec("c")}, 0,
                     [tasks(0), tasks(1), tasks(2)], [tasks()] * 3, id="the quota limits promotions of standby tasks"),
        pytest.param({"a": MemberSpec("a", tasks(0)), "b": MemberSpec("b", tasks(1)),
                      "c": MemberSpec("c", (), tasks(2))}, 0, [tasks(0), tasks(1), tasks(2)], [tasks()] * 3,
                     id="a standby task becomes active"),
        pytest.param({"a": MemberSpec("a", tasks(0)), "b": MemberSpec("b", tasks(1)),
                      "c": MemberSpec("c", offsets={("0", 2): 7})}, 0, [tasks(0), tasks(1), tasks(2)], [tasks()] * 3,
                     id="offsets on disk attract the active task"),
        pytest.param({"a": MemberSpec("a", tasks(0)), "b": MemberSpec("b", tasks(1), offsets={("0", 2): 8}),
                      "c": MemberSpec("c", (), offsets={("0", 2): 9})}, 0, [tasks(0), tasks(1), tasks(2)],
                     [tasks()] * 3, id="the larger offset is first"),
        pytest.param({"a": MemberSpec("a", tasks(0, 1), tasks(2)), "b": MemberSpec("b", tasks(2), tasks(0, 1))}, 1,
                     [tasks(0, 1), tasks(2)], [tasks(2), tasks(0, 1)], id="standby tasks stay"),
        pytest.param({"a": MemberSpec("a", tasks(0, 1, 2)), "b": MemberSpec("b")}, 1, [tasks(0, 1), tasks(2)],
                     [tasks(2), tasks(0, 1)], id="the previous active member keeps a moved task as standby"),
    ],
)  # fmt: skip
def test_sticky_assignment(
    members: dict[str, MemberSpec], replicas: int, active: list[frozenset[Task]], standby: list[frozenset[Task]]
) -> None:
    assigned = assign(members, {"0": STATEFUL}, replicas)
    assert [one.active for one in assigned.values()] == active
    assert [one.standby for one in assigned.values()] == standby
    assert not any(one.warmup for one in assigned.values())


SUBTOPOLOGIES = st.dictionaries(
    st.sampled_from("xyz"), st.builds(SubtopologySpec, st.integers(1, 9), st.booleans()), max_size=3
)
PROCESSES = st.lists(st.sampled_from("pqr"), min_size=1, max_size=7)


def specs(processes: list[str], previous: Mapping[str, Tasks]) -> dict[str, MemberSpec]:
    return {
        f"m{number}": MemberSpec(process, *previous.get(f"m{number}", Tasks())[:2])
        for number, process in enumerate(processes)
    }


def check(
    members: Mapping[str, MemberSpec], subtopologies: Mapping[str, SubtopologySpec], replicas: int
) -> dict[str, Tasks]:
    assigned = assign(members, subtopologies, replicas)
    assert assigned.keys() == members.keys()
    every = {(name, index) for name, one in subtopologies.items() for index in range(one.task_count)}
    active = Counter(task for one in assigned.values() for task in one.active)
    assert active == Counter(every), "every task is active once"
    by_process: dict[str, Counter[Task]] = {}
    for member_id, one in assigned.items():
        by_process.setdefault(members[member_id].process_id, Counter()).update([*one.active, *one.standby])
    assert all(count == 1 for process in by_process.values() for count in process.values()), "once for each process"
    standby = Counter(task for one in assigned.values() for task in one.standby)
    possible = min(replicas, len(by_process) - 1)
    wanted = Counter({task: possible for task in every if subtopologies[task[0]].is_stateful and possible})
    assert standby == wanted, "as many standby tasks as processes allow"
    return assigned


@given(PROCESSES, SUBTOPOLOGIES, st.integers(0, 3))
def test_any_assignment_is_complete_balanced_and_stable(
    processes: list[str], subtopologies: dict[str, SubtopologySpec], replicas: int
) -> None:
    first = check(specs(processes, {}), subtopologies, replicas)
    actives = [len(one.active) for one in first.values()]
    if len(set(Counter(processes).values())) == 1:
        assert max(actives) - min(actives) <= 1
    again = check(specs(processes, first), subtopologies, replicas)
    if not replicas and max(actives) - min(actives) <= 1:
        assert again == first, "nothing moves without a change"


@given(PROCESSES, st.sampled_from("pqr"), SUBTOPOLOGIES, st.integers(0, 2))
def test_few_active_tasks_move_when_members_join_or_leave(
    processes: list[str], joining: str, subtopologies: dict[str, SubtopologySpec], replicas: int
) -> None:
    before = check(specs(processes, {}), subtopologies, replicas)
    joined = check(specs([*processes, joining], before), subtopologies, replicas)
    quota = -(-sum(one.task_count for one in subtopologies.values()) // (len(processes) + 1))
    for member_id, old in before.items():
        kept = old.active & joined[member_id].active
        assert len(kept) >= min(len(old.active), quota - 1), "only tasks above the quota move"
    left = check(specs(processes, joined), subtopologies, replicas)
    for member_id, old in joined.items():
        if member_id in left:
            assert old.active <= left[member_id].active, "no task moves away when a member leaves"
