"""The extras on docs/install.md."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_page_lists_each_extra() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    in_table = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    sentence = page.partition("The extras ")[2].partition(" are only for the development")[0]
    of_development = set(re.findall(r"`(\w+)`", sentence))
    assert in_table | of_development == extras.keys()
    assert not in_table & of_development
    assert all(f"'kafka-sluice[{extra}]'" in page for extra in in_table)
