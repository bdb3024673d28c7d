"""docs/conformance.md, from the pages about KIPs: `python -m tests.docs.conformance` writes it.

Each page `docs/kip-*.md` has a table of the KIP's testable statements: number, statement, and the tests that hold it,
or why there are none. Where a test is, is looked up.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conformance.md"
# How many statements each KIP has.
STATEMENTS = {"13": 21, "91": 16, "144": 15, "572": 13, "580": 18}
NAMES = {
    "13": "quotas",
    "91": "how long a record may take",
    "144": "reconnect backoff",
    "572": "how long a task may take",
    "580": "retry backoff",
}
_ROW = re.compile(r"\| (\d[\d, ]*) \| (.+) \| (.+) \|")
_TABLE = re.compile(r"(<!-- statements: [^\n]*-->\n).*?(<!-- end of statements -->)", re.DOTALL)


class Statement(NamedTuple):
    """One statement, as its page has it. `state`: why no test holds it; "" where one does."""

    number: int
    text: str
    tests: list[str]
    state: str


def pages() -> dict[str, Path]:
    """Those that are there, by the KIP's number."""
    found = {path.stem.removeprefix("kip-"): path for path in (ROOT / "docs").glob("kip-*.md")}
    return dict(sorted(found.items(), key=lambda item: int(item[0])))


def statements(kip: str) -> Iterator[Statement]:
    """Those of a KIP's page; a row that is about several is each of them."""
    for line in pages()[kip].read_text(encoding="utf-8").splitlines():
        row = _ROW.fullmatch(line)
        if row is None:
            continue
        tests = re.findall(r"`(test_\w+)`", row[3])
        for number in row[1].split(","):
            yield Statement(int(number), row[2], tests, "" if tests else row[3])


@cache
def files_of_tests() -> dict[str, list[str]]:
    """Where tests are, by their names, from the folder `tests` on."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in re.findall(r"^ *(?:async )?def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(name, []).append(path.relative_to(ROOT / "tests").as_posix())
    return found


def table() -> str:
    """All statements, KIP by KIP."""
    lines = ["| | statement | state | tests in |", "| --- | --- | --- | --- |"]
    for kip in pages():
        lines.append(f"| **[KIP-{kip}](kip-{kip}.md)** | **{NAMES[kip]}** | | |")
        for number, text, tests, state in sorted(statements(kip)):
            held = state or f"held by {len(tests)} test{'s' * (len(tests) > 1)}"
            files = dict.fromkeys(file for test in tests for file in files_of_tests()[test])
            lines.append(f"| {kip}/{number} | {text} | {held} | {', '.join(f'`{file}`' for file in files)} |")
    return "\n".join([*lines, ""])


def with_table(page: str) -> str:
    return _TABLE.sub(lambda match: f"{match[1]}{table()}{match[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
