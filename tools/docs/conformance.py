"""docs/conformance.md from the pages about KIPs.

Each page `docs/kip-*.md` has a table of the KIP's testable statements: number, statement, and its tests, or the reason
why there are none. The files of the tests are found by name.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conformance.md"
# Name and number of statements of each KIP.
KIPS = {
    "13": ("quotas", 21),
    "91": ("delivery timeout", 16),
    "144": ("reconnect backoff", 15),
    "572": ("task timeout", 13),
    "580": ("retry backoff", 18),
}
_ROW = re.compile(r"\| (\d[\d, ]*) \| (.+) \| (.+) \|")
_TABLE = re.compile(r"(<!-- statements: [^\n]*-->\n).*?(<!-- end of statements -->)", re.DOTALL)


class Statement(NamedTuple):
    """One statement of a page. `state`: why it has no test, or ""."""

    number: int
    text: str
    tests: list[str]
    state: str


def pages() -> dict[str, Path]:
    """Return the pages by KIP number."""
    found = {path.stem.removeprefix("kip-"): path for path in (ROOT / "docs").glob("kip-*.md")}
    return dict(sorted(found.items(), key=lambda item: int(item[0])))


def statements(kip: str) -> Iterator[Statement]:
    """Yield the statements of a KIP's page; a row can have several numbers."""
    for line in pages()[kip].read_text(encoding="utf-8").splitlines():
        row = _ROW.fullmatch(line)
        if row is None:
            continue
        tests = re.findall(r"`(test_\w+)`", row[3])
        for number in row[1].split(","):
            yield Statement(int(number), row[2], tests, "" if tests else row[3])


@cache
def files_of_tests() -> dict[str, list[str]]:
    """Return the files of each test, by test name, relative to `tests`."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in re.findall(r"^ *(?:async )?def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(name, []).append(path.relative_to(ROOT / "tests").as_posix())
    return found


def table() -> str:
    """Return the table of all statements."""
    lines = ["| | statement | tests | files |", "| --- | --- | --- | --- |"]
    for kip in pages():
        lines.append(f"| **[KIP-{kip}](kip-{kip}.md)** | **{KIPS[kip][0]}** | | |")
        for number, text, tests, state in sorted(statements(kip)):
            count = state or str(len(tests))
            files = dict.fromkeys(file for test in tests for file in files_of_tests()[test])
            lines.append(f"| {kip}/{number} | {text} | {count} | {', '.join(f'`{file}`' for file in files)} |")
    return "\n".join([*lines, ""])


def with_table(page: str) -> str:
    return _TABLE.sub(lambda match: f"{match[1]}{table()}{match[2]}", page)
