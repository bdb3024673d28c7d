"""Several changes that are undone as one."""

from collections.abc import Iterator
from functools import partial

import pytest

from sluice.broker.faults.undo import Undo, undo_all


def test_changes_are_undone_once_in_reverse_order() -> None:
    undone: list[int] = []
    undo = undo_all(partial(undone.append, number) for number in range(3))
    assert undone == []
    undo()
    undo()
    assert undone == [2, 1, 0]


def test_earlier_changes_are_undone_if_a_later_one_fails() -> None:
    undone: list[int] = []

    def do() -> Iterator[Undo]:
        yield partial(undone.append, 1)
        raise KeyError("the second")

    with pytest.raises(KeyError):
        undo_all(do())
    assert undone == [1]
