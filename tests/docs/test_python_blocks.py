"""The runner of Python blocks in documentation pages."""

from pathlib import Path

import pytest

from tests.support.python_blocks import BlockError, blocks, run_blocks


def page(*texts: str) -> str:
    return "\n".join(["# Page", *(f"```python\n{text}\n```" for text in texts), "```console\n$ false\n```", ""])


def test_each_block_is_a_file_named_by_its_line() -> None:
    assert blocks(page("a = 1", "b = 2")) == {"line_3.py": "a = 1\n", "line_6.py": "b = 2\n"}


RAN = "__import__('pathlib').Path('ran').touch()"


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(["import sluice", f"if __name__ == '__main__':\n    {RAN}"], id="programs"),
        pytest.param([f"def test_it():\n    {RAN}", "def helper(): ..."], id="test and program"),
        pytest.param(
            [f"import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        {RAN}"], id="unittest test"
        ),
    ],
)
def test_valid_block_runs(texts: list[str], tmp_path: Path) -> None:
    assert run_blocks(page(*texts), tmp_path) == len(texts)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("1 / 0", r"line_3\.py.*ZeroDivisionError", id="exception in a program"),
        pytest.param("def test_it():\n    assert 1 == 2", r"line_3\.py.*assert 1 == 2", id="failed test"),
        pytest.param("def test_it(:", r"line_3\.py.*SyntaxError", id="syntax error"),
    ],
)
def test_failure_is_reported_with_its_line(text: str, error: str, tmp_path: Path) -> None:
    with pytest.raises(BlockError, match=f"(?s){error}"):
        run_blocks(page(text), tmp_path)
