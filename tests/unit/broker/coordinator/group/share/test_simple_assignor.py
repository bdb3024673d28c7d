"""The `simple` assignor: sharing, balance, stickiness and different subscriptions."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.coordinator.group.assignors.spec import Assignment, MemberSpec
from sluice.broker.coordinator.group.share.simple_assignor import assign

A, B = b"a" * 16, b"b" * 16


def assigned(
    members: Mapping[str, Sequence[bytes]],
    partitions: Mapping[bytes, Sequence[int]],
    previous: Mapping[str, Assignment] | None = None,
) -> dict[str, Assignment]:
    specs = {name: MemberSpec(frozenset(topics), (previous or {}).get(name, {})) for name, topics in members.items()}
    homogeneous = len({frozenset(topics) for topics in members.values()}) <= 1
    return assign(specs, partitions, homogeneous=homogeneous)


SHARED = {
    "one member has all partitions": (1, 3, 1, [3]),
    "fewer members than partitions have one or more each": (2, 3, 1, [2, 1]),
    "as many members as partitions have one each": (3, 3, 1, [1, 1, 1]),
    "three members share two partitions, each with two members": (3, 2, 2, [2, 1, 1]),
    "all members share the only partition": (5, 1, 5, [1, 1, 1, 1, 1]),
    "no partition is initialized": (2, 0, 0, [0, 0]),
}


@pytest.mark.parametrize(("members", "partitions", "sharing", "counts"), SHARED.values(), ids=SHARED)
def test_partitions_are_shared_evenly(members: int, partitions: int, sharing: int, counts: list[int]) -> None:
    target = assigned({f"m{number}": [A] for number in range(members)}, {A: range(partitions)})
    assert [len(one.get(A, ())) for one in target.values()] == counts
    shared = Counter(index for one in target.values() for index in one.get(A, ()))
    assert shared == dict.fromkeys(range(partitions), sharing)


def test_partitions_of_all_topics_are_shared_together_by_equal_subscriptions() -> None:
    target = assigned({"x": [A, B], "y": [A, B]}, {A: [0], B: [0]})
    assert sorted([*one] for one in target.values()) == [[A], [B]]


def test_each_topic_is_shared_by_its_subscribers() -> None:
    target = assigned({"x": [A], "y": [A, B], "z": []}, {A: [0, 1], B: [0]})
    assert target == {"x": {A: {0}}, "y": {A: {1}, B: {0}}, "z": {}}


def test_topics_that_no_member_subscribes_to_are_given_up() -> None:
    assert assigned({"x": [B]}, {B: [0]}, {"x": {A: frozenset({0})}}) == {"x": {B: {0}}}


@given(
    members=st.lists(st.lists(st.sampled_from([A, B]), unique=True), min_size=1, max_size=7),
    counts=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    joined=st.integers(0, 3),
)
def test_targets_are_balanced_complete_and_stable(
    members: list[list[bytes]], counts: tuple[int, int], joined: int
) -> None:
    subscribed = {topic for topics in members for topic in topics}
    partitions = {topic: range(count) for topic, count in zip((A, B), counts, strict=True) if topic in subscribed}
    names = {f"m{number}": topics for number, topics in enumerate(members)}
    before = assigned(dict(list(names.items())[: len(names) - joined] or names.items()), partitions)
    target = assigned(names, partitions, before)
    assert assigned(names, partitions, target) == target
    for topic, indexes in partitions.items():
        subscribers = [name for name, topics in names.items() if topic in topics]
        shared = Counter(index for one in target.values() for index in one.get(topic, ()))
        assert set(shared) == set(indexes)
        assert not indexes or max(shared.values()) <= len(subscribers)
        assert all(name in subscribers for name, one in target.items() if one.get(topic))
