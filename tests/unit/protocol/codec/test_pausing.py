"""The arrays of a message that is decoded in slices: each kind of iteration pauses, and short arrays are plain."""

# ruff: noqa: RUF012  # msgspec copies a message's empty list for each instance, as in protocol/apis

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Sequence
from itertools import chain, groupby
from typing import ClassVar

import pytest

from sluice.protocol.codec.compile import decode_in_slices
from sluice.protocol.codec.pausing import ELEMENTS_PER_PAUSE, LONG, PausingDict, PausingList, Slices
from sluice.protocol.message import Message
from sluice.protocol.types import Versions, int32, string
from tests.unit.protocol.messages import encoded

LENGTH = 5 * ELEMENTS_PER_PAUSE + 3
PLAIN = list(range(LENGTH))

ITERATIONS: dict[str, Callable[[list[int]], object]] = {
    "for": lambda x: [one for one in x],  # noqa: C416  (the loop is tested)
    "generator": lambda x: sum(one for one in x),
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict.fromkeys": dict.fromkeys,
    "Counter": Counter,
    "deque": deque,
    "sorted": sorted,
    "sum": sum,
    "max": max,
    "min with a key": lambda x: min(x, key=str),
    "any": lambda x: any(one < 0 for one in x),
    "map": lambda x: list(map(str, x)),
    "filter": lambda x: list(filter(None, x)),
    "enumerate": lambda x: list(enumerate(x)),
    "zip": lambda x: list(zip(x, PLAIN, strict=True)),
    "zip as the second": lambda x: list(zip(PLAIN, x, strict=True)),
    "chain": lambda x: list(chain((), x)),
    "groupby": lambda x: [list(group) for _, group in groupby(x)],
    "unpacking": lambda x: [*x],
    "arguments": lambda x: max(*x),
    "extend": lambda x: list[int]().extend(x),
    "+=": lambda x: list[int]().__iadd__(x),
    "set.update": lambda x: set[int]().update(x),
    "issubset": lambda x: {0}.issubset(x),
    "isdisjoint": lambda x: {-1}.isdisjoint(x),
    "nlargest": lambda x: heapq.nlargest(3, x),
}
IN_ONE_PIECE: dict[str, Callable[[list[int]], object]] = {
    "len": len,
    "in": lambda x: -1 in x,
    "==": lambda x: x == PLAIN,
    "slice": lambda x: type(x[1:]),
    "copy": lambda x: [*x.copy()],
    "reversed": lambda x: list(reversed(x)),
    "sort": lambda x: x.sort(),
    "bool": bool,
}


def slices(pauses: list[None], freed: list[object]) -> Slices:
    return Slices(lambda: pauses.append(None), freed.append)


def pausing(elements: list[int], pauses: list[None]) -> PausingList[int]:
    return PausingList(elements, slices(pauses, []))


@pytest.mark.parametrize("iterate", ITERATIONS.values(), ids=ITERATIONS)
def test_iteration_pauses_and_has_the_same_result(iterate: Callable[[list[int]], object]) -> None:
    pauses: list[None] = []
    assert iterate(pausing(PLAIN, pauses)) == iterate(PLAIN)
    assert len(pauses) >= LENGTH // ELEMENTS_PER_PAUSE


@pytest.mark.parametrize("use", IN_ONE_PIECE.values(), ids=IN_ONE_PIECE)
def test_other_uses_do_not_pause(use: Callable[[list[int]], object]) -> None:
    pauses: list[None] = []
    assert use(pausing(PLAIN, pauses)) == use(PLAIN.copy())
    assert not pauses


DICT_ITERATIONS: dict[str, Callable[[dict[int, int]], object]] = {
    "for": lambda x: [one for one in x],  # noqa: C416  (the loop is tested)
    "keys": lambda x: list(x.keys()),
    "values": lambda x: list(x.values()),
    "items": lambda x: list(x.items()),
    "dict": lambda x: dict(x),
    "update": lambda x: dict[int, int]().update(x),
    "|": lambda x: {0: 0} | x,
    "frozenset": frozenset,
    "sorted": sorted,
    "unpacking": lambda x: {**x},
}
DICT_IN_ONE_PIECE: dict[str, Callable[[dict[int, int]], object]] = {
    "len": len,
    "in": lambda x: -1 in x,
    "==": lambda x: x == {number: -number for number in PLAIN},
    "copy": lambda x: x.copy(),
    "type of a copy": lambda x: type(x.copy()),
    "bool": bool,
}


@pytest.mark.parametrize("iterate", DICT_ITERATIONS.values(), ids=DICT_ITERATIONS)
def test_iteration_over_a_dict_pauses_and_has_the_same_result(iterate: Callable[[dict[int, int]], object]) -> None:
    pauses: list[None] = []
    numbers: dict[int, int] = PausingDict(slices(pauses, []))
    plain = {number: -number for number in PLAIN}
    numbers.update(plain)
    assert iterate(numbers) == iterate(plain)
    assert len(pauses) >= LENGTH // ELEMENTS_PER_PAUSE


@pytest.mark.parametrize("use", DICT_IN_ONE_PIECE.values(), ids=DICT_IN_ONE_PIECE)
def test_other_uses_of_a_dict_do_not_pause(use: Callable[[dict[int, int]], object]) -> None:
    pauses: list[None] = []
    numbers: dict[int, int] = PausingDict(slices(pauses, []))
    numbers.update((number, -number) for number in PLAIN)
    assert use(numbers) == use({number: -number for number in PLAIN})
    assert not pauses


@pytest.mark.parametrize("count", [LONG - 1, LONG])
def test_long_containers_are_freed_later(count: int) -> None:
    freed: list[object] = []
    array = PausingList(range(count), slices([], freed))
    numbers: PausingDict[int, int] = PausingDict(slices([], freed))
    numbers.update(dict.fromkeys(range(count), 0))
    copy = array.copy()
    del array, numbers, copy
    assert list(map(len, freed)) == ([count] * 3 if count == LONG else [])  # type: ignore[arg-type]
    freed.clear()
    assert not freed, "a container is freed once"


class Inner(Message):
    words: list[string] = []
    numbers: list[int32] = []


class Outer(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    inners: list[Inner] = []
    words: list[string] = []
    numbers: list[int32] = []


@pytest.mark.parametrize("count", [0, 1, ELEMENTS_PER_PAUSE, ELEMENTS_PER_PAUSE + 1, 10 * ELEMENTS_PER_PAUSE])
def test_arrays_of_each_kind_pause_if_they_are_long(count: int) -> None:
    words, numbers = [str(number) for number in range(count)], list(range(count))
    outer = Outer([Inner(words, numbers)] * count, words, numbers)
    content = encoded(outer, 0)
    pauses: list[None] = []
    message, _ = decode_in_slices(Outer, 0, memoryview(content), 0, len(content), slices(pauses, []))
    assert message == outer
    arrays: list[Sequence[object]] = [message.inners, message.words, message.numbers]
    arrays += chain.from_iterable((inner.words, inner.numbers) for inner in message.inners)
    for array in arrays:
        pauses.clear()
        assert len(list(array)) == count
        assert bool(pauses) == (count > ELEMENTS_PER_PAUSE)
    assert encoded(message, 0) == content
