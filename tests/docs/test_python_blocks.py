"""The runner of Python blocks in documentation pages."""

from pathlib import Path

import pytest

from tests.support.python_blocks import BlockError, run_blocks


def page(*texts: str) -> str:
    return "\n".join(["# Page", *(f"```python\n{text}\n```" for text in texts), "```console\n$ false\n```", ""])


FAILURES = {
    "exception in a program": ("1 / 0", r"line_3\.py.*ZeroDivisionError"),
    "failed test": ("def test_it():\n    assert 1 == 2", r"line_3\.py.*assert 1 == 2"),
    "syntax error": ("def test_it(:", r"line_3\.py.*SyntaxError"),
}


@pytest.mark.parametrize(("text", "error"), FAILURES.values(), ids=FAILURES)
def test_failure_is_reported_with_its_line(text: str, error: str, tmp_path: Path) -> None:
    with pytest.raises(BlockError, match=f"(?s){error}"):
        run_blocks(page(text), tmp_path)
