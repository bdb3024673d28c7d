"""Placement of replicas: on different brokers, leaders spread evenly, stopped brokers last."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from random import Random

import pytest

from sluice.broker.controller.replica_placement import assignment_problem, placement_problem
from sluice.broker.controller.replica_placement import place as place_in_racks

# Two racks of three brokers, and one of a single broker.
RACKS = {1: "a", 2: "a", 3: "a", 4: "b", 5: "b", 6: "b", 7: "c"}


place = partial(place_in_racks, racks={})


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("partitions", [1, 3, 12])
def test_leaders_and_replicas_are_spread_evenly(partitions: int, replicas: int) -> None:
    placed = place(Random(1), [1, 2, 3], [], partitions, replicas)
    assert [len(set(brokers)) for brokers in placed] == [replicas] * partitions
    if partitions >= 3:
        assert Counter(brokers[0] for brokers in placed) == dict.fromkeys([1, 2, 3], partitions // 3)
        every = Counter(broker for brokers in placed for broker in brokers)
        assert every == dict.fromkeys([1, 2, 3], partitions * replicas // 3)


def test_first_leader_is_random_so_that_small_topics_spread() -> None:
    random = Random(1)
    assert {place(random, [1, 2, 3], [], 1, 1)[0][0] for _ in range(30)} == {1, 2, 3}


def test_followers_of_a_leader_vary() -> None:
    placed = place(Random(1), [1, 2, 3, 4], [], 40, 2)
    assert len(set(placed)) > 4


def test_stopped_broker_leads_nothing_and_follows_only_if_needed() -> None:
    assert {brokers[:2] for brokers in place(Random(1), [1, 2], [3], 8, 3)} == {(1, 2), (2, 1)}
    assert all(3 not in brokers for brokers in place(Random(1), [1, 2], [3], 8, 2))


SPREADS = {
    "leaders alternate between racks": ([], 1, {1: 1}),
    "one replica per rack": ([], 3, {1: 3}),
    "more replicas than racks": ([], 5, {1: 1, 2: 2}),
    "fenced broker beside live ones": ([3], 3, {1: 3}),
    "rack with a fenced broker only": ([7], 3, {1: 3}),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("down", "replicas", "per_rack"), SPREADS.values(), ids=SPREADS)
def test_replicas_are_spread_over_racks(seed: int, down: list[int], replicas: int, per_rack: dict[int, int]) -> None:
    up = [node_id for node_id in RACKS if node_id not in down]
    placed = place_in_racks(Random(seed), up, down, 6, replicas, RACKS)
    leaders = Counter(RACKS[brokers[0]] for brokers in placed)
    for brokers in placed:
        assert len(set(brokers)) == replicas
        assert Counter(Counter(RACKS[broker] for broker in brokers).values()) == per_rack
        assert brokers[0] not in down
        assert 3 not in {*down} & {*brokers}, "a live broker of the rack comes first"
    assert set(leaders) == {RACKS[node_id] for node_id in up}
    if not down:
        assert leaders == {"a": 2, "b": 2, "c": 2}


def test_one_broker_uses_no_random_numbers() -> None:
    random = Random(1)
    before = random.getstate()
    assert place(random, [7], [], 3, 1) == [(7,), (7,), (7,)]
    assert random.getstate() == before


UNREACHABLE = {
    "one per broker": (3, 3, 3, None),
    "some brokers stopped": (1, 3, 3, None),
    "more than brokers": (3, 3, 4, "replication factor of 4 cannot be reached because only 3 broker(s)"),
    "no broker running": (0, 3, 1, "All brokers are currently fenced"),
}


@pytest.mark.parametrize(("up", "registered", "replicas", "error"), UNREACHABLE.values(), ids=UNREACHABLE)
def test_unreachable_replication_factor_is_reported(up: int, registered: int, replicas: int, error: str | None) -> None:
    problem = placement_problem(up, registered, replicas)
    assert problem is None if error is None else error in (problem or "")


INVALID_ASSIGNMENTS = {
    "any brokers in any order": ([3, 1], None, None),
    "expected replication factor": ([3, 1], 2, None),
    "empty": ([], None, "an empty replica list"),
    "unknown broker": ([1, 4], None, "broker 4, but no such broker is registered"),
    "duplicate broker": ([2, 1, 2], None, "the broker 2 more than once"),
    "below the replication factor": ([1], 2, "with 1 replica(s), but"),
}


@pytest.mark.parametrize(("brokers", "replicas", "error"), INVALID_ASSIGNMENTS.values(), ids=INVALID_ASSIGNMENTS)
def test_invalid_assignment_is_reported(brokers: Sequence[int], replicas: int | None, error: str | None) -> None:
    problem = assignment_problem(brokers, {1, 2, 3}, replicas)
    assert problem is None if error is None else error in (problem or "")
