"""The page of what clients make of faults, docs/faults-clients.md: cases by clients, written from what the tests found
(--write-fault-table).
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.clients.fault_cases import CASES
from tests.clients.fault_clients import FAULT_CLIENTS
from tests.clients.fault_runs import Case, Found
from tests.clients.fault_settings import SETTINGS
from tests.clients.table import line

DOES_NOT_RECOVER = "**does not recover**"
SETTINGS_HEAD = """# Faults and clients

What the clients in Python do when a broker does what [fault rules](faults.md) say. Every cell is a test,
`tests/clients/test_faults.py`, run with the real client; this page is written from the results by `make fault-table`.

A client produces one record after the other, with acks=all and idempotence, and consumes them: before the fault,
through it and after it. In a cell:

- **recovers**: the application notices nothing but that it takes time.
- **sees** errors, by what it did (`start` a client, `send`, `poll`) and by their names, which the application has to
  expect; then the same producer and consumer go on. `no outcome` is none: it is never told what became of a record.
- **does not recover**: the producer or consumer only fails from then on, and the application has to make another one.

The time is the longest in which no record came through, that is, was acknowledged and read: of one run, on one machine.

No record was lost that had been acknowledged, but where the last column says so; none is in the log twice; and none was
read twice by one consumer, but where that says so.
"""
PAGE = Path(__file__).parents[2] / "docs" / "faults-clients.md"
HEAD = """# Faults and clients

What the clients in Python do when a broker does what [fault rules](faults.md) say. Every cell is a test,
`tests/clients/test_faults.py`, run with the real client; this page is written from the results by `make fault-table`.

A client produces one record after the other with acks=all and idempotence, and consumes them, before the fault, through
it and after it. In a cell:

- **recovers**: the application notices nothing but that it takes time.
- **sees** an error by its name, which the application has to expect; then the same producer and consumer go on.
- **does not recover**: the producer or consumer only fails from then on, and the application has to make another one.

The time is the longest in which no record came through, which is acknowledged and read: of one run, on one machine.

In none of them a record was lost that had been acknowledged, except where the last column says so; none is in the log
twice, and none was read twice by one consumer, except where it says so.
"""


def cell(found: Found) -> str:
    """What came of it, in words and a time."""
    told = ", ".join(f"`{error}`" for error in sorted(found.errors))
    if found.replaced:
        words = f"{' and '.join(sorted(found.replaced))} {DOES_NOT_RECOVER}: {told}"
    else:
        words = f"sees {told}" if told else "recovers"
    return f"{words} ({max(found.stalled_s, 0.1):.1f} s)"


def besides(case: Case) -> str:
    """Why clients do that, and what an application has to live with."""
    more = {"Lost may be": case.loses, "Read twice may be": case.reads_twice}
    return " ".join([f"{case.why}.", *(f"{words} {what}." for words, what in more.items() if what)])


def render(cells: Mapping[tuple[str, str], str]) -> str:
    """The page, with cells by case and client."""
    heads = [f"{client.name}<br>{client.version()}" for client in FAULT_CLIENTS]
    table = [line(["action", "the broker", *heads, "why"]), line(["---"] * (len(heads) + 3))]
    for case in CASES:
        found = [cells.get((case.title, client.name), "not run") for client in FAULT_CLIENTS]
        table.append(line([f"`{case.kind}`", case.title, *found, besides(case)]))
    return "\n".join([HEAD, "".join(table), "## Settings", "", SETTINGS_HEAD, *map(_settings, SETTINGS), ""])


def _settings(name: str) -> str:
    of = SETTINGS[name]
    told = [f"`{key}={value}`" for key, value in {**of["both"], **of["producer"], **of["consumer"]}.items()]
    return f"- {name}: {', '.join(told)}"


class FaultTableWriter:
    """Collects what the tests find, and writes the page at the end."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str], str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = {name: str(value) for name, value in report.user_properties}
        if report.when == "call" and "fault case" in found:
            cells = {client.name: found[client.name] for client in FAULT_CLIENTS if client.name in found}
            self._cells.update({(found["fault case"], name): told for name, told in cells.items()})

    def pytest_sessionfinish(self) -> None:
        PAGE.write_text(render(self._cells))
