"""The page docs/faults-clients.md: reactions of clients to faults, from test results (--write-fault-table)."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.clients.fault_cases import CASES
from tests.clients.fault_clients import FAULT_CLIENTS
from tests.clients.fault_runs import Case, Found
from tests.clients.fault_settings import SETTINGS
from tools.docs.tables import line

DOES_NOT_RECOVER = "**does not recover**"
SETTINGS_HEAD = """The clients run with these settings, most of them timeouts shorter than the defaults. Some cases add
others, in `tests/clients/fault_cases.py`.
"""
PAGE = Path(__file__).parents[3] / "docs" / "faults-clients.md"
HEAD = """# Faults and clients

This page shows how three Python clients react to each [fault](faults.md), and what the application sees. Use it to
choose a client, or to decide which errors your application must handle.

Every cell is the result of a test with the real client (`tests/clients/test_faults.py`); `tools/campaign run
fault-table` runs the tests and writes this page. A client produces records one by one with acks=all and idempotence,
and consumes them, before, during and after the fault:

- **recovers**: the application sees only a delay.
- **sees**: the application receives these errors from `start`, `send` or `poll`, and the same client then continues.
  `no outcome`: the client never reports the outcome of a record.
- **does not recover**: the producer or consumer fails permanently, and the application must create a new one.

The time is the longest interval in which no record was both acknowledged and read, in one run on one machine.

No acknowledged record was lost, no record is in the log twice, and no consumer read a record twice, except where the
last column states it.
"""


def cell(found: Found) -> str:
    """Return the outcome and the time."""
    errors = ", ".join(f"`{error}`" for error in sorted(found.errors))
    if found.replaced:
        words = f"{' and '.join(sorted(found.replaced))} {DOES_NOT_RECOVER}: {errors}"
    else:
        words = f"sees {errors}" if errors else "recovers"
    return f"{words} ({max(found.stalled_s, 0.1):.1f} s)"


def besides(case: Case) -> str:
    """Return the reason, and which records may be lost or read twice."""
    more = {"Lost": case.loses, "Read twice": case.reads_twice}
    return " ".join([f"{case.why}.", *(f"{words}: {records}." for words, records in more.items() if records)])


def render(cells: Mapping[tuple[str, str], str]) -> str:
    """Return the page, with cells by case and client."""
    heads = [f"{client.name}<br>{client.version()}" for client in FAULT_CLIENTS]
    table = [line(["action", "the broker", *heads, "why"]), line(["---"] * (len(heads) + 3))]
    for title, case in CASES.items():
        found = [cells.get((title, client.name), "not run") for client in FAULT_CLIENTS]
        table.append(line([f"`{case.kind}`", title, *found, besides(case)]))
    return "\n".join([HEAD, "".join(table), "## Settings", "", SETTINGS_HEAD, *map(_settings, SETTINGS), ""])


def _settings(name: str) -> str:
    of = SETTINGS[name]
    settings = [f"`{key}={value}`" for key, value in {**of["both"], **of["producer"], **of["consumer"]}.items()]
    return f"- {name}: {', '.join(settings)}"


class FaultTableWriter:
    """Collects the results of the tests, and writes the page at the end."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = {name: str(value) for name, value in report.user_properties}
        if report.when == "call" and "fault case" in found:
            cells = {client.name: found[client.name] for client in FAULT_CLIENTS if client.name in found}
            self._cells.update({(found["fault case"], name): text for name, text in cells.items()})

    def pytest_sessionfinish(self) -> None:
        PAGE.write_text(render(self._cells))
