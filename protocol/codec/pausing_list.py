"""The long arrays of a message that is decoded in slices: iterating over one pauses the request."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

T = TypeVar("T")

# Elements between two pauses. Reading the clock costs a tenth of the cheapest element; the most expensive takes 0.1 ms.
ELEMENTS_PER_PAUSE = 16


class PausingList(list[T]):
    """A list that calls `pause` after each 16 elements of an iteration.

    This includes comprehensions, `zip`, `sum`, `sorted`, `list(x)`, `set(x)`, `dict.fromkeys(x)` and `Counter(x)`:
    CPython reads only exact lists without their iterators. Slices, copies and reversed lists are plain.
    """

    __slots__ = ("_pause",)

    def __init__(self, elements: Iterable[T], pause: Callable[[], object]) -> None:
        super().__init__(elements)
        self._pause = pause

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._parts())  # a generator per part, not per element

    def _parts(self) -> Iterator[list[T]]:
        start = 0
        while part := self[start : start + ELEMENTS_PER_PAUSE]:
            yield part
            start += ELEMENTS_PER_PAUSE
            self._pause()
