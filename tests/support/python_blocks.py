"""Runs the Python of a documentation page: each fenced `python` block is a file of its own, in an empty folder.

A block that has tests is for pytest, any other is a program, which must end without an exception.
"""

import re
import subprocess
import sys
from pathlib import Path

from tests.support.broker_process import CLEAN_ENVIRONMENT

TIMEOUT_S = 60
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TEST = re.compile(r"^ *(async )?def test_", re.MULTILINE)
# A file is known by its line in the page. Schemathesis is here as a command; as a plugin it takes a second to load.
_PYTEST = ("-m", "pytest", "-q", "-pno:cacheprovider", "-pno:schemathesis", "-o", "python_files=line_*.py")


class BlockError(AssertionError):
    """Python of a page that does not do what the page says."""


def blocks(page: str) -> dict[str, str]:
    """The blocks of a page by the names of their files, which say in which line they begin."""
    found = _BLOCK.finditer(page)
    return {f"line_{page.count(chr(10), 0, block.start()) + 2}.py": block[1] for block in found}


def run_blocks(page: str, folder: Path) -> int:
    """Runs all Python of `page` in `folder`; how many blocks that were. Raises BlockError where one fails."""
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
    environment = {**CLEAN_ENVIRONMENT, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise BlockError(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
