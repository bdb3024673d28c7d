"""The runner of Python blocks in documentation pages."""

from pathlib import Path

import pytest

from tests.support.python_blocks import BlockError, run_blocks


def page(*texts: str) -> str:
    return "\n".join(["# Page", *(f"```python\n{text}\n```" for text in texts), "```console\n$ false\n```", ""])


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
