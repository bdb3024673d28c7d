"""The version comes from the tag, and also exists without one."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support import skips

ROOT = Path(__file__).parents[3]
NOBODY_KNOWS = "0.1.0.dev0"
# Independent of the Git settings of the user.
SETTINGS = ("user.name=a", "user.email=a@localhost", "commit.gpgsign=false", "tag.gpgsign=false")
GIT = ["git", *(word for setting in SETTINGS for word in ("-c", setting))]


def built(folder: Path) -> str:
    """Return the version that a build of the tree has."""
    command = [sys.executable, "-m", "hatchling", "version"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_archive_of_the_tree_has_a_version(tree: Path) -> None:
    assert built(tree) == NOBODY_KNOWS
    assert f'__version__ = "{NOBODY_KNOWS}"' in (ROOT / "sluice/version.py").read_text()
    assert f"ARG VERSION={NOBODY_KNOWS}\n" in (ROOT / "Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["version"]["fallback-version"] == NOBODY_KNOWS


@pytest.mark.skipif(shutil.which("git") is None, reason=skips.program("git", "install it"))
def test_tag_sets_the_version_and_later_commits_a_development_version(tree: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run([*GIT, *words], cwd=tree, capture_output=True, check=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    git("tag", "v1.2.3")
    assert built(tree) == "1.2.3"
    git("commit", "--allow-empty", "-m", "more")
    assert built(tree).startswith("1.2.4.dev1+g")
