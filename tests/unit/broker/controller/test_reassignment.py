"""Reassignments: start, completion and cancellation."""

import pytest

from sluice.broker.controller.reassignment import (
    Plan,
    Replicas,
    changes_factor,
    completed,
    is_reassigned,
    plan,
    reverted,
)
from sluice.broker.metadata.topic import Partition
from tests.support.virtual_broker import VirtualBroker


def partition(
    replicas: tuple[int, ...], isr: tuple[int, ...], adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()
) -> Partition:
    found = VirtualBroker().topic().partitions[0]
    found.replicas, found.isr, found.adding, found.removing = replicas, isr, adding, removing
    return found


@pytest.mark.parametrize(
    ("target", "planned"),
    [
        pytest.param((3, 4), Plan((3, 4, 1, 2), (3, 4), (1, 2)), id="to other brokers"),
        pytest.param((2, 3), Plan((2, 3, 1), (3,), (1,)), id="to one other broker"),
        pytest.param((2, 1), Plan((2, 1), (), ()), id="to another order"),
        pytest.param((1,), Plan((1, 2), (), (2,)), id="to fewer"),
        pytest.param((1, 2, 3), Plan((1, 2, 3), (3,), ()), id="to more"),
    ],
)
def test_reassignment_starts_with_old_and_new_replicas(target: tuple[int, ...], planned: Plan) -> None:
    assert plan(partition((1, 2), (1, 2)), target) == planned


def test_new_reassignment_keeps_replicas_being_added() -> None:
    moving = partition((2, 3, 1), (1, 2), adding=(3,), removing=(1,))
    assert plan(moving, (3, 4)) == Plan((3, 4, 1, 2), (3, 4), (1, 2))
    assert plan(moving, (1, 2)) == Plan((1, 2, 3), (), (3,))


@pytest.mark.parametrize(
    ("moving", "expected"),
    [
        pytest.param(((1, 2), (1, 2)), None, id="none in progress"),
        pytest.param(((3, 1), (1,), (3,), (1,)), None, id="new replica not in sync"),
        pytest.param(((3, 1), (3, 1), (3,), (1,)), Replicas((3,), (3,)), id="new replica in sync"),
        pytest.param(((1, 2, 3), (1, 2, 3), (3,)), Replicas((1, 2, 3), (1, 2, 3)), id="added replica in sync"),
        pytest.param(((1, 2), (2,), (), (2,)), None, id="no in-sync replica would remain"),
        pytest.param(((1, 2, 3), (1, 3), (), (3,)), None, id="removal while a remaining replica is out of sync"),
        pytest.param(((1, 2, 3), (1, 2, 3), (), (3,)), Replicas((1, 2), (1, 2)), id="removal with all in sync"),
    ],
)
def test_reassignment_completes_when_the_new_replicas_are_in_sync(
    moving: tuple[tuple[int, ...], ...], expected: Replicas | None
) -> None:
    found = partition(*moving)
    assert is_reassigned(found) == (len(moving) > 2)
    assert completed(found) == expected


@pytest.mark.parametrize(
    ("moving", "before"),
    [
        pytest.param(((3, 1), (1,), (3,), (1,)), Replicas((1,), (1,)), id="no new replica in sync"),
        pytest.param(((3, 4, 1, 2), (3, 1), (3, 4), (1, 2)), Replicas((1, 2), (1,)), id="one new replica in sync"),
        pytest.param(((3, 1, 2), (3,), (3,), (1, 2)), Replicas((1, 2), (1,)), id="only the new replica in sync"),
    ],
)
def test_cancelled_reassignment_restores_the_old_replicas(
    moving: tuple[tuple[int, ...], ...], before: Replicas
) -> None:
    assert reverted(partition(*moving)) == before


@pytest.mark.parametrize(
    ("moving", "target", "factors"),
    [
        pytest.param(((1, 2), (1, 2)), (3, 4), None, id="same number"),
        pytest.param(((1, 2), (1, 2)), (3,), (2, 1), id="fewer"),
        pytest.param(((3, 4, 1, 2), (1, 2), (3, 4), (1, 2)), (1, 2), None, id="same number as the target in progress"),
        pytest.param(((3, 1, 2), (1, 2), (3,), (1, 2)), (1, 2), (1, 2), id="more than the target in progress"),
    ],
)
def test_replication_factor_is_compared_with_the_target_in_progress(
    moving: tuple[tuple[int, ...], ...], target: tuple[int, ...], factors: tuple[int, int] | None
) -> None:
    assert changes_factor(partition(*moving), target) == factors
