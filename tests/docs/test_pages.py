"""Every command that the documentation shows does what the documentation says."""

from pathlib import Path

import pytest

from tests.support.console import run_page

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_commands_do_what_the_page_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    run_page(page.read_text(), tmp_path)
