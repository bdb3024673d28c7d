"""Every block of the documentation is run, or has a reason here and is checked without running it.

test_pages.py runs the `console` and `python` blocks.
"""

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from sluice.broker.faults.rule import parse_rule
from sluice.cli.main import COMMANDS
from tests.support.command_lines import check_command_line
from tools.docs.results.findings import DEFECTS

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("**/*.md")])
_QUICK_STARTS = "docs/how-to/from-"
_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_IN_TEXT = re.compile(r"`((?:sluice|make|python) [^`]+)`")

OUTPUT = "output, not input"
SETTINGS = "settings of another program"
FOREIGN = "a change of a program for another tool"
ENGINE = "needs a container engine"
MINUTES = "takes minutes; a target of the Makefile or another test runs it"
LANGUAGES = "needs other toolchains; tools/campaign run quick-starts runs it"
# Page -> start of a block -> why it is not run.
NOT_RUN = {
    "README.md": {
        "python3 -m venv": "installs from PyPI; the test itself runs as a Python block",
        "make demo": MINUTES,
        "sluice proxy": "needs a cluster; docs/proxy.md runs these commands in front of one",
    },
    "CONTRIBUTING.md": {"make setup": MINUTES},
    "docs/acls.md": {"INFO ": OUTPUT},
    "docs/audit.md": {
        "sluice audit run --subject 'my-app": "needs an application; tests/clients/test_audit_commands.py runs three",
        "sluice audit run --subject aiokafka --upstream": "takes minutes; test_real_cluster.py audits in virtual time",
    },
    "docs/coming-from.md": {"-": FOREIGN},
    "docs/compatibility/tools.md": {"mvn ": "needs Java and Maven; tools/campaign run ecosystem runs a registry"},
    "docs/containers.md": {
        "docker build": ENGINE,
        "import socket": ENGINE,
        "SLUICE_ADMIN_TOKEN=": ENGINE,
        "services:": ENGINE,
    },
    "docs/demo.md": {"make demo": MINUTES, "client  quota": OUTPUT},
    **{
        f"docs/findings/{name}.md": {"sluice audit run": "takes up to a minute; tests/clients/test_findings.py runs it"}
        for name in DEFECTS
    },
    "docs/development.md": {"pytest tests/clients": "needs another broker", "lock() {": "needs PyPI"},
    "docs/fleets.md": {"[[steps]]": "a step of a scenario; tests/unit/sluice/fleet simulates quotas"},
    "docs/lint.md": {"sluice pipeline lint": "needs Java; tests/spark/test_lint_job.py runs the job"},
    "docs/how-to/test-an-application.md": {
        "from contextlib import asynccontextmanager": "needs FastAPI",
        "import asyncio": "needs FastStream",
    },
    "docs/how-to/test-with-tls-and-sasl.md": {"python3 -m venv": "installs from PyPI; the test itself runs as a block"},
    "docs/how-to/use-a-real-cluster.md": {"sluice pipeline backoff": "needs Java; the page of Spark runs the job"},
    "docs/how-to/run-in-ci.md": {
        "tools/campaign run zipapp": "takes minutes; tools/campaign run zipapp also tests the file",
        "jobs:": SETTINGS,
        "- run: pytest": SETTINGS,
        "services:": SETTINGS,
        "test:": SETTINGS,
        "int port;": ENGINE,
    },
    "docs/install.md": {"pip install": "installs from PyPI; tools/campaign run wheel installs the built package"},
    "docs/plan.md": {"sluice pipeline plan": "needs a file of millions of rows; the page runs similar commands"},
    "docs/pytest.md": {
        "def test_a_pizza": "the first test of the page; a console block runs a variant",
        "pytest --kafka-upstream": "needs a cluster; test_kafka_upstream.py runs it",
    },
    "docs/security.md": {
        "WARNING ": OUTPUT,
        "bootstrap.servers=": SETTINGS,
        "listener.name": SETTINGS,
        "keytool": "needs a JDK and a keystore",
        "sasl.enabled": SETTINGS,
    },
    "docs/serve.md": {"scrape_configs:": SETTINGS},
    "docs/testing.md": {"sluice.errors.WaitTimeoutError": OUTPUT},
    "docs/top.md": {"sluice top": "needs a terminal; tests/integration/sluice/cli/top/test_command.py provides one"},
}


class Block(NamedTuple):
    """A fenced block."""

    page: str
    language: str
    text: str


# Those of docs/explore are generated; the programs and findings are those of tests/integration/sluice/explore.
BLOCKS = [
    Block(str(page.relative_to(ROOT)), found[1], found[2].lstrip())
    for page in PAGES
    if page.parent != ROOT / "docs/explore"
    for found in _BLOCK.finditer(page.read_text())
]


def _reason(block: Block) -> str | None:
    if block.page.startswith(_QUICK_STARTS):
        return LANGUAGES
    return next((why for start, why in NOT_RUN.get(block.page, {}).items() if block.text.startswith(start)), None)


def _is_run(block: Block) -> bool:
    if block.page in ("docs/faults.md", "docs/reference/faults.md") and block.language == "toml":
        return True  # test_toml_blocks_are_valid_fault_rules
    if block.language == "py":
        return True  # test_quoted_code_is_in_the_exchange
    if block.page == "docs/api.md":
        return True  # listings that make generate writes
    return block.page != "CONTRIBUTING.md" and block.language in ("console", "python")


def test_every_block_is_run_or_has_a_reason() -> None:
    assert [(one.page, one.text) for one in BLOCKS if not _is_run(one) and _reason(one) is None] == []


def test_every_reason_has_a_block() -> None:
    given = {(page, start) for page, starts in NOT_RUN.items() for start in starts}
    left = [one for one in BLOCKS if not _is_run(one)]
    needed = {(page, start) for page, start in given for one in left if one.page == page and one.text.startswith(start)}
    assert given == needed


def test_toml_blocks_are_valid_fault_rules() -> None:
    shown = [tomllib.loads(one.text)["faults"] for one in BLOCKS if one.language == "toml" and _reason(one) is None]
    assert len(shown) > 30
    for table in shown:
        for rule in table:
            parse_rule(rule, "faults")


def test_quoted_code_is_in_the_exchange() -> None:
    files = [(ROOT / "broker/exchange" / name).read_text() for name in ("exchange.py", "wait.py")]
    code = "\n".join(line.strip() for text in files for line in text.splitlines())
    quotes = ["\n".join(map(str.strip, one.text.splitlines())) for one in BLOCKS if one.language == "py"]
    assert [quote for quote in quotes if quote not in code] == []
    assert len(quotes) >= 8


_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
NOT_RUN_LINES = [
    line.removeprefix("$ ")
    for one in BLOCKS
    if not _is_run(one) and _reason(one) != OUTPUT
    for line in one.text.splitlines()
]
IN_TEXT = [found for page in PAGES for found in _IN_TEXT.findall(_BLOCK.sub("", page.read_text()))]


@pytest.mark.parametrize("line", sorted({line for line in NOT_RUN_LINES if line.startswith("sluice ")}))
def test_skipped_command_is_valid(line: str) -> None:
    check_command_line(line)


def test_commands_in_the_text_exist() -> None:
    commands = [text.split() for text in IN_TEXT if text.startswith("sluice ")]
    assert [words for words in commands if words[1] not in COMMANDS] == []


def test_targets_and_programs_exist() -> None:
    shown = [words for text in (*NOT_RUN_LINES, *IN_TEXT) if len(words := text.split()) > 1]
    assert {words[1] for words in shown if words[0] == "make"} <= _TARGETS
    programs = {words[2] if words[1] == "-m" else words[1] for words in shown if words[0] == "python"}
    assert [name for name in programs if not _exists(name)] == []


def _exists(program: str) -> bool:
    return (ROOT / program).is_file() if program.endswith(".py") else find_spec(program) is not None
