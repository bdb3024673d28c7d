"""The long arrays of a message that is decoded in slices, and the results of its handler.

Iterating over one pauses the request. One that is not used any more is not freed at once, which would take 0.1 s for a
million elements, but emptied in slices (`unused.py`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple, TypeVar

K = TypeVar("K")
T = TypeVar("T")

# Elements between two pauses. Reading the clock costs a tenth of the cheapest element; the most expensive takes 0.1 ms.
ELEMENTS_PER_PAUSE = 16
LONG = 1000  # elements; shorter containers take less than 0.1 ms to free


class Slices(NamedTuple):
    """What work in slices needs."""

    pause: Callable[[], object]
    free: Callable[[Collection[object]], object]  # empties a list or dict that has no other reference


class LargeList(list[T]):
    """A list that may have many elements; state can keep it, because iterating over it does not pause."""

    __slots__ = ("_slices",)

    def __init__(self, elements: Iterable[T], slices: Slices) -> None:
        self._slices = slices  # first: `elements` may raise
        super().__init__(elements)

    def __del__(self) -> None:
        if len(self) >= LONG:
            self._slices.free(self)  # which keeps this list until it is empty


class PausingList(LargeList[T]):
    """A list that calls `pause` after each 16 elements of an iteration.

    This includes comprehensions, `zip`, `sum`, `sorted`, `list(x)`, `set(x)`, `dict.fromkeys(x)` and `Counter(x)`:
    CPython reads only exact lists without their iterators. Slices and reversed lists are plain.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._parts())  # a generator per part, not per element

    def _parts(self) -> Iterator[list[T]]:
        start = 0
        while part := self[start : start + ELEMENTS_PER_PAUSE]:
            yield part
            start += ELEMENTS_PER_PAUSE
            self._slices.pause()

    def copy(self) -> list[T]:
        """Return a list that does not pause, made without a pause."""
        return LargeList(self[:], self._slices)


class LargeDict(dict[K, T]):
    """A dict that may have many elements; state can keep it, because iterating over it does not pause."""

    __slots__ = ("_slices",)

    def __init__(self, slices: Slices) -> None:
        super().__init__()
        self._slices = slices

    def __del__(self) -> None:
        if len(self) >= LONG:
            self._slices.free(self)


class PausingDict(LargeDict[K, T]):
    """A dict that calls `pause` after each 16 elements of an iteration. Copies are plain, and made without a pause."""

    __slots__ = ()

    def __iter__(self) -> Iterator[K]:
        return paused(super().__iter__(), self._slices.pause)

    def keys(self) -> Iterator[K]:  # type: ignore[override]  # all that is used of a view
        return iter(self)

    def values(self) -> Iterator[T]:  # type: ignore[override]
        return paused(super().values(), self._slices.pause)

    def items(self) -> Iterator[tuple[K, T]]:  # type: ignore[override]
        return paused(super().items(), self._slices.pause)

    def copy(self) -> dict[K, T]:
        return dict(zip(super().keys(), super().values(), strict=True))


def paused(elements: Iterable[T], pause: Callable[[], object]) -> Iterator[T]:
    """Return an iterator that calls `pause` after each 16 elements."""
    return chain.from_iterable(_parts(iter(elements), pause))


def _parts(elements: Iterator[T], pause: Callable[[], object]) -> Iterator[list[T]]:
    while part := list(islice(elements, ELEMENTS_PER_PAUSE)):
        yield part
        if len(part) == ELEMENTS_PER_PAUSE:
            pause()
