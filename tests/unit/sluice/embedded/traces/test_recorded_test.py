"""Names of files, and the places of failures."""

from pathlib import Path

import pytest

from sluice.embedded.traces.recorded_test import failure_of, file_stem, shown_path

STEMS = {
    "tests/test_shop.py::TestShop::test_it": "tests-test_shop.py-TestShop-test_it",
    "test_shop.TestShop.test_it": "test_shop.TestShop.test_it",
}


@pytest.mark.parametrize(("name", "stem"), STEMS.items(), ids=STEMS)
def test_plain_name_is_kept(name: str, stem: str) -> None:
    assert file_stem(name) == stem


CHANGED = [".", "..", "/", "a b", "a[1]", "a[1", "é", "\0", "\ud800", "a" * 121, "a" * 122, "con:", "-a"]


@pytest.mark.parametrize("name", CHANGED)
def test_other_name_gets_a_hash(name: str) -> None:
    stem = file_stem(name)
    assert stem.isascii()
    assert stem.strip(".-") != ""
    assert "/" not in stem
    assert len(stem) <= 120 + len("-01234567")
    assert [other for other in CHANGED if file_stem(other) == stem] == [name]


def fail() -> None:
    raise ValueError("on purpose")


def test_place_is_the_last_line_in_the_file_of_the_test() -> None:
    with pytest.raises(ValueError, match="on purpose") as caught:
        fail()
    here = failure_of(caught.value, __file__, 1.5)
    assert (here.text, here.file, here.at_s) == ("ValueError: on purpose", __file__, 1.5)
    assert here.line == fail.__code__.co_firstlineno + 1


def test_place_is_the_raise_if_the_file_of_the_test_has_no_part_in_it() -> None:
    with pytest.raises(ValueError, match="on purpose") as caught:
        fail()
    assert failure_of(caught.value, "elsewhere.py").file == __file__
    assert failure_of(ValueError("never raised"), "elsewhere.py").line == -1


PATHS = {
    "in the working directory": (str(Path.cwd() / "tests/test_shop.py"), "tests/test_shop.py"),
    "elsewhere": ("/elsewhere/test_shop.py", "/elsewhere/test_shop.py"),
    "relative": ("test_shop.py", "test_shop.py"),
    "unknown": ("", ""),
}


@pytest.mark.parametrize(("file", "shown"), PATHS.values(), ids=PATHS)
def test_path_is_relative_to_the_working_directory(file: str, shown: str) -> None:
    assert shown_path(file) == shown
