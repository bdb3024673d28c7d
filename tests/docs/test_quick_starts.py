"""Quick starts in other languages, docs/how-to/from-*.md: their files are written and their commands run.

They download from Maven Central, proxy.golang.org, npm, crates.io or NuGet, and compile for up to two minutes; so they
run only with the campaign `quick-starts`.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import skips

PAGES = sorted((Path(__file__).parents[2] / "docs/how-to").glob("from-*.md"))
_FILE = re.compile(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(900)  # a first build downloads and compiles a client in C
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_quick_start_passes(page: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("--quick-starts"):
        pytest.skip(skips.campaign("quick-starts"))
    text = page.read_text()
    (commands,) = _COMMANDS.findall(text)
    tool = commands.split()[0]
    if shutil.which(tool) is None:
        pytest.skip(skips.program(tool, "install it"))
    for name, content in _FILE.findall(text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    path_with_sluice = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-ec", commands],
        cwd=tmp_path,
        env={**os.environ, "PATH": path_with_sluice},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-5_000:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_quick_start_has_a_test_and_one_block_of_commands(page: Path) -> None:
    text = page.read_text()
    names = [name for name, _ in _FILE.findall(text)]
    assert any("orders" in name.lower() for name in names), names
    assert len(_COMMANDS.findall(text)) == 1
