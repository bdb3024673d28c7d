"""Every command that the documentation shows does what the documentation says, and its Python runs."""

from pathlib import Path

import pytest

from tests.support.console import run_page
from tests.support.python_blocks import blocks, run_blocks

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_commands_do_what_the_page_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    run_page(page.read_text(), tmp_path)


# Those of the README are about a broker that the reader has started.
WITH_PYTHON = [page for page in PAGES if page.parent.name == "docs" and blocks(page.read_text())]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=[page.name for page in WITH_PYTHON])
def test_python_runs(page: Path, tmp_path: Path) -> None:
    run_blocks(page.read_text(), tmp_path)
