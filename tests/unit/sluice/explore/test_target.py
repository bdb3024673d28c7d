"""The cases of parametrized tests: ids as pytest makes them, and values."""

from enum import Enum

import pytest

from sluice.explore.target import parametrized


class Color(Enum):
    RED = 1


def application() -> None: ...


mark = pytest.mark.parametrize
# The marks, the closest one to the function first, and the ids of pytest.
CASES: dict[str, tuple[list[pytest.MarkDecorator], list[str]]] = {
    "no marks": ([], [""]),
    "texts, numbers and None": ([mark("a", ["x", 1, 2.5, None, True])], ["x", "1", "2.5", "None", "True"]),
    "functions and classes": ([mark("a", [application, Color])], ["application", "Color"]),
    "a member of an enumeration": ([mark("a", [Color.RED])], ["Color.RED"]),
    "other values": ([mark("a", [[1], {}])], ["a0", "a1"]),
    "several names": ([mark("a, b", [(1, 2), (3, [4])])], ["1-2", "3-b1"]),
    "a list of names": ([mark(["a", "b"], [(1, 2)])], ["1-2"]),
    "ids": ([mark("a", [[1], [2]], ids=["one", None])], ["one", "a1"]),
    "a function of ids": ([mark("a", [1, [2]], ids=lambda value: "one" if value == 1 else None)], ["one", "a1"]),
    "pytest.param": ([mark("a", [pytest.param(1, id="one"), pytest.param(2)])], ["one", "2"]),
    "two marks": ([mark("a", ["x", "y"]), mark("b", [1, 2])], ["x-1", "x-2", "y-1", "y-2"]),
}


@pytest.mark.parametrize(("marks", "ids"), CASES.values(), ids=CASES)
def test_ids(marks: list[pytest.MarkDecorator], ids: list[str]) -> None:
    assert [*parametrized(each.mark for each in marks)] == ids


def test_values() -> None:
    marks = [mark("a", [application]), mark("b, c", [pytest.param(1, [2], id="one")])]
    assert parametrized(each.mark for each in marks) == {"application-one": {"a": application, "b": 1, "c": [2]}}
