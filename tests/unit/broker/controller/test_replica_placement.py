"""Where replicas are placed: each partition's on different brokers, leaders spread, those that are down last."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from sluice.broker.controller.replica_placement import assignment_problem, place, placement_problem


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("partitions", [1, 3, 12])
def test_leaders_and_replicas_are_spread_evenly(partitions: int, replicas: int) -> None:
    placed = place(Random(1), [1, 2, 3], [], partitions, replicas)
    assert [len(set(brokers)) for brokers in placed] == [replicas] * partitions
    if partitions >= 3:
        assert Counter(brokers[0] for brokers in placed) == dict.fromkeys([1, 2, 3], partitions // 3)
        every = Counter(broker for brokers in placed for broker in brokers)
        assert every == dict.fromkeys([1, 2, 3], partitions * replicas // 3)


def test_the_first_leader_is_drawn_so_that_small_topics_do_not_all_fall_to_one_broker() -> None:
    random = Random(1)
    assert {place(random, [1, 2, 3], [], 1, 1)[0][0] for _ in range(30)} == {1, 2, 3}


def test_the_same_brokers_do_not_always_follow_the_same_leader() -> None:
    placed = place(Random(1), [1, 2, 3, 4], [], 40, 2)
    assert len(set(placed)) > 4


def test_a_broker_that_is_down_leads_nothing_and_follows_only_where_it_must() -> None:
    assert {brokers[:2] for brokers in place(Random(1), [1, 2], [3], 8, 3)} == {(1, 2), (2, 1)}
    assert all(3 not in brokers for brokers in place(Random(1), [1, 2], [3], 8, 2))


def test_one_broker_draws_nothing() -> None:
    random = Random(1)
    before = random.getstate()
    assert place(random, [7], [], 3, 1) == [(7,), (7,), (7,)]
    assert random.getstate() == before


@pytest.mark.parametrize(
    ("up", "registered", "replicas", "words"),
    [
        pytest.param(3, 3, 3, None, id="as many as there are"),
        pytest.param(1, 3, 3, None, id="some of them down"),
        pytest.param(3, 3, 4, "replication factor of 4 cannot be reached because only 3 broker(s)", id="too many"),
        pytest.param(0, 3, 1, "All brokers are currently fenced", id="none up"),
    ],
)
def test_how_many_replicas_can_be_had(up: int, registered: int, replicas: int, words: str | None) -> None:
    problem = placement_problem(up, registered, replicas)
    assert problem is None if words is None else words in (problem or "")


@pytest.mark.parametrize(
    ("brokers", "replicas", "words"),
    [
        pytest.param([3, 1], None, None, id="any brokers in any order"),
        pytest.param([3, 1], 2, None, id="as many as wanted"),
        pytest.param([], None, "an empty replica list", id="none"),
        pytest.param([1, 4], None, "broker 4, but no such broker is registered", id="one that is not there"),
        pytest.param([2, 1, 2], None, "the broker 2 more than once", id="one twice"),
        pytest.param([1], 2, "with 1 replica(s), but", id="fewer than before"),
    ],
)
def test_what_an_assignment_may_be(brokers: Sequence[int], replicas: int | None, words: str | None) -> None:
    problem = assignment_problem(brokers, {1, 2, 3}, replicas)
    assert problem is None if words is None else words in (problem or "")
