"""The Python that docs/virtual-time.md shows runs, and what it asserts holds."""

import re
import sys
from pathlib import Path
from subprocess import run

import pytest

PAGE = Path(__file__).parents[2] / "docs/virtual-time.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=[f"snippet {number}" for number in range(1, len(SNIPPETS) + 1)])
def test_a_snippet_runs(snippet: str, tmp_path: Path) -> None:
    result = run(
        [sys.executable, "-W", "error", "-c", snippet], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
