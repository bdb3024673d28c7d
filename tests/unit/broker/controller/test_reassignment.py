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


STARTED = {
    "to other brokers": ((3, 4), Plan((3, 4, 1, 2), (3, 4), (1, 2))),
    "to one other broker": ((2, 3), Plan((2, 3, 1), (3,), (1,))),
    "to another order": ((2, 1), Plan((2, 1), (), ())),
    "to fewer": ((1,), Plan((1, 2), (), (2,))),
    "to more": ((1, 2, 3), Plan((1, 2, 3), (3,), ())),
}


@pytest.mark.parametrize(("target", "planned"), STARTED.values(), ids=STARTED)
def test_reassignment_starts_with_old_and_new_replicas(target: tuple[int, ...], planned: Plan) -> None:
    assert plan(partition((1, 2), (1, 2)), target) == planned


def test_new_reassignment_keeps_replicas_being_added() -> None:
    moving = partition((2, 3, 1), (1, 2), adding=(3,), removing=(1,))
    assert plan(moving, (3, 4)) == Plan((3, 4, 1, 2), (3, 4), (1, 2))
    assert plan(moving, (1, 2)) == Plan((1, 2, 3), (), (3,))


COMPLETED = {
    "none in progress": (((1, 2), (1, 2)), None),
    "new replica not in sync": (((3, 1), (1,), (3,), (1,)), None),
    "new replica in sync": (((3, 1), (3, 1), (3,), (1,)), Replicas((3,), (3,))),
    "added replica in sync": (((1, 2, 3), (1, 2, 3), (3,)), Replicas((1, 2, 3), (1, 2, 3))),
    "no in-sync replica would remain": (((1, 2), (2,), (), (2,)), None),
    "removal while a remaining replica is out of sync": (((1, 2, 3), (1, 3), (), (3,)), None),
    "removal with all in sync": (((1, 2, 3), (1, 2, 3), (), (3,)), Replicas((1, 2), (1, 2))),
}


@pytest.mark.parametrize(("moving", "expected"), COMPLETED.values(), ids=COMPLETED)
def test_reassignment_completes_when_the_new_replicas_are_in_sync(
    moving: tuple[tuple[int, ...], ...], expected: Replicas | None
) -> None:
    found = partition(*moving)
    assert is_reassigned(found) == (len(moving) > 2)
    assert completed(found) == expected


CANCELLED = {
    "no new replica in sync": (((3, 1), (1,), (3,), (1,)), Replicas((1,), (1,))),
    "one new replica in sync": (((3, 4, 1, 2), (3, 1), (3, 4), (1, 2)), Replicas((1, 2), (1,))),
    "only the new replica in sync": (((3, 1, 2), (3,), (3,), (1, 2)), Replicas((1, 2), (1,))),
}


@pytest.mark.parametrize(("moving", "before"), CANCELLED.values(), ids=CANCELLED)
def test_cancelled_reassignment_restores_the_old_replicas(
    moving: tuple[tuple[int, ...], ...], before: Replicas
) -> None:
    assert reverted(partition(*moving)) == before


REPLICATION_FACTORS = {
    "same number": (((1, 2), (1, 2)), (3, 4), None),
    "fewer": (((1, 2), (1, 2)), (3,), (2, 1)),
    "same number as the target in progress": (((3, 4, 1, 2), (1, 2), (3, 4), (1, 2)), (1, 2), None),
    "more than the target in progress": (((3, 1, 2), (1, 2), (3,), (1, 2)), (1, 2), (1, 2)),
}


@pytest.mark.parametrize(("moving", "target", "factors"), REPLICATION_FACTORS.values(), ids=REPLICATION_FACTORS)
def test_replication_factor_is_compared_with_the_target_in_progress(
    moving: tuple[tuple[int, ...], ...], target: tuple[int, ...], factors: tuple[int, int] | None
) -> None:
    assert changes_factor(partition(*moving), target) == factors
