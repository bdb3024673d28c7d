"""The server-side assignors, compared with Kafka's and checked for invariants."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.coordinator.group.assignors.registry import ASSIGNORS
from sluice.broker.coordinator.group.assignors.spec import Assignment, GroupSpec, MemberSpec

GOLDEN = Path(__file__).parent / "golden" / "kafka_assignments.txt"


def topic_id(number: int) -> bytes:
    """Return a topic id; as signed numbers, ids sort like those in the golden file: by number % 3 first."""
    high = 0x1000_0000_0000_0000 * (number % 3 - 1) + number * 7919
    return high.to_bytes(8, signed=True) + (number * 104729).to_bytes(8)


class Case(NamedTuple):
    """A group and the assignment of Kafka's assignor."""

    assignor: str
    spec: GroupSpec
    expected: dict[str, dict[bytes, frozenset[int]]]


def partitions(text: str) -> dict[bytes, frozenset[int]]:
    """Parse `TOPIC:PARTITION,PARTITION;...`; `-` is empty."""
    if text == "-":
        return {}
    topics = [topic.split(":") for topic in text.split(";")]
    return {topic_id(int(topic)): frozenset(map(int, indexes.split(","))) for topic, indexes in topics}


def cases() -> Iterator[Case]:
    text = "\n".join(line for line in GOLDEN.read_text().splitlines() if not line.startswith("#"))
    for block in text.strip().split("\n\n"):
        head, *lines = (line.split() for line in block.splitlines())
        topics = {topic_id(int(words[1])): int(words[2]) for words in lines if words[0] == "topic"}
        members = [words[1:] for words in lines if words[0] == "member"]
        yield Case(
            head[0],
            GroupSpec(
                {
                    member_id: MemberSpec(
                        frozenset(topic_id(int(topic)) for topic in topic_numbers.split(",") if topic_numbers != "-"),
                        partitions(current),
                        None if instance_id == "-" else instance_id,
                    )
                    for member_id, instance_id, topic_numbers, current, _, _ in members
                },
                topics,
                homogeneous=head[1] == "homogeneous",
            ),
            {member_id: partitions(expected) for member_id, _, _, _, _, expected in members},
        )


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{case.assignor} for {len(case.spec.members)} members, case {number}")
        for number, case in enumerate(cases())
    ],
)
def test_assignment_equals_kafkas(case: Case) -> None:
    target = ASSIGNORS[case.assignor](case.spec)
    assert {member_id: dict(target.get(member_id, {})) for member_id in case.spec.members} == case.expected


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_group_without_members_gets_no_assignment(assignor: str) -> None:
    assert ASSIGNORS[assignor](GroupSpec({}, {}, homogeneous=True)) == {}


def test_static_members_keep_their_partition_ranges_under_new_member_ids() -> None:
    def ranges(first_id: str, second_id: str) -> list[Assignment]:
        members = {
            first_id: MemberSpec(frozenset([b"t"]), {}, "b"),
            "dynamic": MemberSpec(frozenset([b"t"]), {}),
            second_id: MemberSpec(frozenset([b"t"]), {}, "a"),
        }
        target = ASSIGNORS["range"](GroupSpec(members, {b"t": 5}, homogeneous=True))
        return [target[second_id], target[first_id], target["dynamic"]]

    assert ranges("x", "y") == ranges("y", "x") == [{b"t": {0, 1}}, {b"t": {2, 3}}, {b"t": {4}}]


@st.composite
def groups(draw: st.DrawFn, *, homogeneous: bool) -> GroupSpec:
    topics = {bytes([number]) * 16: draw(st.integers(1, 6)) for number in range(1, draw(st.integers(1, 4)) + 1)}
    ids = [f"m{number}" for number in range(draw(st.integers(1, 5)))]
    subsets = st.sets(st.sampled_from(list(topics)), min_size=1)
    shared = draw(subsets)
    subscribed = {member_id: shared if homogeneous else draw(subsets) for member_id in ids}
    assigned: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in ids}
    for topic, count in topics.items():
        for partition in range(count):
            owner = draw(st.sampled_from([None, *ids]))
            if owner is not None:
                assigned[owner].setdefault(topic, set()).add(partition)
    members = {member_id: MemberSpec(frozenset(subscribed[member_id]), assigned[member_id]) for member_id in ids}
    return GroupSpec(members, topics, homogeneous=homogeneous)


def pairs(assignment: Assignment) -> set[tuple[bytes, int]]:
    return {(topic, partition) for topic, indexes in assignment.items() for partition in indexes}


SUBSCRIPTIONS = {"same subscriptions": True, "different subscriptions": False}


@pytest.mark.parametrize("homogeneous", SUBSCRIPTIONS.values(), ids=SUBSCRIPTIONS)
@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(data=st.data())
def test_each_subscribed_partition_is_assigned_once_to_a_subscriber(
    assignor: str, homogeneous: bool, data: st.DataObject
) -> None:
    spec = data.draw(groups(homogeneous=homogeneous))
    target = ASSIGNORS[assignor](spec)
    assigned = [pair for member_id in spec.members for pair in pairs(target.get(member_id, {}))]
    subscribed = {topic for member in spec.members.values() for topic in member.subscribed}
    assert sorted(assigned) == sorted(
        (topic, index) for topic in subscribed for index in range(spec.partition_counts[topic])
    )
    for member_id, member in spec.members.items():
        assert target.get(member_id, {}).keys() <= member.subscribed


@given(groups(homogeneous=True))
def test_uniform_assignor_balances_members_with_the_fewest_moves(spec: GroupSpec) -> None:
    target = ASSIGNORS["uniform"](spec)
    sizes = [len(pairs(target.get(member_id, {}))) for member_id in spec.members]
    assert max(sizes) - min(sizes) <= 1
    quota, extra = divmod(sum(sizes), len(sizes))
    kept_by = [
        len(pairs(target.get(member_id, {})) & pairs(member.assigned)) for member_id, member in spec.members.items()
    ]
    keepable = [
        sum(topic in member.subscribed for topic, _ in pairs(member.assigned)) for member in spec.members.values()
    ]
    # Each member keeps up to the quota; `extra` members may keep one more.
    at_least = sum(min(had, quota) for had in keepable)
    assert sum(kept_by) == at_least + min(extra, sum(had > quota for had in keepable))


@given(groups(homogeneous=False))
def test_uniform_assignor_is_stable_for_its_own_assignment(spec: GroupSpec) -> None:
    target = ASSIGNORS["uniform"](spec)
    members = {
        member_id: member._replace(assigned=target.get(member_id, {})) for member_id, member in spec.members.items()
    }
    assert ASSIGNORS["uniform"](spec._replace(members=members)) == target
