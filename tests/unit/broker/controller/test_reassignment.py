"""How a partition gets from one set of brokers to another, and back."""

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
def test_a_reassignment_begins_with_all_replicas(target: tuple[int, ...], planned: Plan) -> None:
    assert plan(partition((1, 2), (1, 2)), target) == planned


def test_what_is_being_added_stays_so_in_a_reassignment_that_takes_its_place() -> None:
    moving = partition((2, 3, 1), (1, 2), adding=(3,), removing=(1,))
    assert plan(moving, (3, 4)) == Plan((3, 4, 1, 2), (3, 4), (1, 2))
    assert plan(moving, (1, 2)) == Plan((1, 2, 3), (), (3,))


@pytest.mark.parametrize(
    ("moving", "done"),
    [
        pytest.param(((1, 2), (1, 2)), None, id="none in progress"),
        pytest.param(((3, 1), (1,), (3,), (1,)), None, id="the new one not in sync"),
        pytest.param(((3, 1), (3, 1), (3,), (1,)), Replicas((3,), (3,)), id="the new one in sync"),
        pytest.param(((1, 2, 3), (1, 2, 3), (3,)), Replicas((1, 2, 3), (1, 2, 3)), id="one more, in sync"),
        pytest.param(((1, 2), (2,), (), (2,)), None, id="nothing in sync would be left"),
        pytest.param(((1, 2, 3), (1, 3), (), (3,)), None, id="fewer, and one that stays is not in sync"),
        pytest.param(((1, 2, 3), (1, 2, 3), (), (3,)), Replicas((1, 2), (1, 2)), id="fewer, all in sync"),
    ],
)
def test_it_is_complete_when_those_that_come_are_in_sync(
    moving: tuple[tuple[int, ...], ...], done: Replicas | None
) -> None:
    found = partition(*moving)
    assert is_reassigned(found) == (len(moving) > 2)
    assert completed(found) == done


@pytest.mark.parametrize(
    ("moving", "before"),
    [
        pytest.param(((3, 1), (1,), (3,), (1,)), Replicas((1,), (1,)), id="nobody has come yet"),
        pytest.param(((3, 4, 1, 2), (3, 1), (3, 4), (1, 2)), Replicas((1, 2), (1,)), id="some have"),
        pytest.param(((3, 1, 2), (3,), (3,), (1, 2)), Replicas((1, 2), (1,)), id="only the new one is in sync"),
    ],
)
def test_it_can_be_taken_back(moving: tuple[tuple[int, ...], ...], before: Replicas) -> None:
    assert reverted(partition(*moving)) == before


@pytest.mark.parametrize(
    ("moving", "target", "factors"),
    [
        pytest.param(((1, 2), (1, 2)), (3, 4), None, id="as many"),
        pytest.param(((1, 2), (1, 2)), (3,), (2, 1), id="fewer"),
        pytest.param(((3, 4, 1, 2), (1, 2), (3, 4), (1, 2)), (1, 2), None, id="as many as it is to have"),
        pytest.param(((3, 1, 2), (1, 2), (3,), (1, 2)), (1, 2), (1, 2), id="more than it is to have"),
    ],
)
def test_how_many_replicas_count_as_those_before(
    moving: tuple[tuple[int, ...], ...], target: tuple[int, ...], factors: tuple[int, int] | None
) -> None:
    assert changes_factor(partition(*moving), target) == factors
