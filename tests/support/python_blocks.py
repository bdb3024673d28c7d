"""Runner of the Python of a documentation page: each fenced `python` block is a separate file in an empty folder.

pytest runs a block with tests. Any other block is a program, which must end without an exception.
"""

import re
import subprocess
import sys
from pathlib import Path

from tests.support.broker_process import CLEAN_ENVIRONMENT, FAST_PYTEST

TIMEOUT_S = 240
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TEST = re.compile(r"^ *(async )?def test_", re.MULTILINE)
# A file is named after its line in the page.
_PYTEST = ("-m", "pytest", "-q", "-pno:cacheprovider", "-pno:xdist", "-o", "python_files=line_*.py")


class BlockError(AssertionError):
    """Python of a page that fails."""


def blocks(page: str) -> dict[str, str]:
    """Return the blocks of a page by file name, which contains the line of their beginning."""
    found = _BLOCK.finditer(page)
    return {f"line_{page.count(chr(10), 0, block.start()) + 2}.py": block[1] for block in found}


def run_blocks(page: str, folder: Path) -> int:
    """Run all Python of `page` in `folder`, and return the number of blocks. Raise BlockError if one fails."""
    files = blocks(page)
    for name, text in files.items():
        (folder / name).write_text(text)
    tests = [name for name, text in files.items() if _TEST.search(text)]
    if tests:
        _run([*_PYTEST, *tests], folder)
    for name in files:
        if name not in tests:
            _run([name], folder)
    return len(files)


def _run(arguments: list[str], folder: Path) -> None:
    command = [sys.executable, *arguments]
    environment = {**CLEAN_ENVIRONMENT, **FAST_PYTEST, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise BlockError(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
