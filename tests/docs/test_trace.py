"""The table of findings in docs/trace.md lists those of the code."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| ((?:`[a-z-]+`(?:, )?)+) \|", re.MULTILINE)


def test_all_findings_are_listed() -> None:
    sources = sorted((ROOT / "sluice/trace/findings").glob("*.py"))
    lines = [line for file in sources for line in re.sub(r"Found\(\s+", "Found(", file.read_text()).splitlines()]
    found = {
        name for line in lines for name in re.findall(r'"([a-z-]+)"', line) if "Found(" in line or "kind = " in line
    }
    table = (ROOT / "docs/trace.md").read_text().partition("\n## Findings\n")[2]
    listed = re.findall("`([a-z-]+)`", " ".join(_ROW.findall(table)))
    assert sorted(listed) == sorted(found - {"error", "warning", "info", "gave up"})
