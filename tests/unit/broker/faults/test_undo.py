"""Several things that are undone as one."""

from collections.abc import Iterator
from functools import partial

import pytest

from sluice.broker.faults.undo import Undo, undo_all


def test_the_last_is_undone_first_and_each_once() -> None:
    undone: list[int] = []
    undo = undo_all(partial(undone.append, number) for number in range(3))
    assert undone == []
    undo()
    undo()
    assert undone == [2, 1, 0]


def test_what_was_done_is_undone_where_the_next_cannot_be() -> None:
    undone: list[int] = []

    def do() -> Iterator[Undo]:
        yield partial(undone.append, 1)
        raise KeyError("the second")

    with pytest.raises(KeyError):
        undo_all(do())
    assert undone == [1]
