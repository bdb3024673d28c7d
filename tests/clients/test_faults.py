"""Each fault action with each Python client: errors, recovery, and no loss of acknowledged records.

The expected results and their reasons are in fault_cases.py.
"""

import logging
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sluice.broker.faults.actions import KINDS
from tests.clients.fault_cases import CASES, ON_SHARE_GROUPS
from tests.clients.fault_clients import FAULT_CLIENTS
from tests.clients.fault_runs import Case, Found, run
from tools.docs.results.fault_table import DOES_NOT_RECOVER, PAGE, besides, cell, render

STALE = "docs/faults-clients.md is out of date: run `tools/campaign run fault-table`"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Silence the clients' logs: errors are expected."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def problems(case: Case, name: str, found: Found) -> list[str]:
    """Return the differences from the expected behaviour of a client."""
    may_see = case.errors.get(name, frozenset())
    replaced = case.replaced.get(name, frozenset())
    wrong = {
        "the fault did not affect it": not found.hits and name not in case.untouched,
        "the fault affected it": bool(found.hits) and name in case.untouched,
        f"its application saw {sorted(found.errors - may_see)}": bool(found.errors - may_see),
        f"its application had to replace {sorted(found.replaced)}": found.replaced != replaced,
        f"{found.lost} were acknowledged but lost": bool(found.lost) and not case.loses,
        f"{found.unread} were not read": bool(found.unread) and not case.loses,
        f"{found.repeated} are in the log twice": bool(found.repeated),
        f"{found.read_twice} were read twice": bool(found.read_twice) and not case.reads_twice,
    }
    return [f"{name}: {what}" for what, is_so in wrong.items() if is_so]


# The finalizers of clients that are closed while busy print warnings.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("title", "case"), CASES.items(), ids=CASES)
def test_clients_react_as_expected_when_the_broker(
    title: str, case: Case, record_property: Callable[[str, object], None]
) -> None:
    with ThreadPoolExecutor(len(FAULT_CLIENTS)) as pool:
        found = [*pool.map(lambda client: run(client, case), FAULT_CLIENTS)]
    record_property("fault case", title)
    failures = []
    for client, one in zip(FAULT_CLIENTS, found, strict=True):
        record_property(client.name, case.untouched.get(client.name) or cell(one))
        failures += problems(case, client.name, one)
    assert failures == []


def test_every_action_has_a_case() -> None:
    assert {case.kind for case in CASES.values()} | ON_SHARE_GROUPS == KINDS.keys()


def cells_of(line: str) -> list[str]:
    return [one.strip() for one in line.strip().strip("|").split("|")]


def test_page_has_every_case_with_its_expected_results() -> None:
    text = PAGE.read_text()
    body = [cells_of(line) for line in text.splitlines() if line.startswith("|")][2:]
    assert [row[1] for row in body] == [*CASES], STALE
    cells = {}
    for (title, case), row in zip(CASES.items(), body, strict=True):
        assert row[-1] == besides(case), STALE
        for client, content in zip(FAULT_CLIENTS, row[2:-1], strict=True):
            cells[title, client.name] = content
            assert content != "not run", STALE
            if client.name in case.untouched:
                assert content == case.untouched[client.name], STALE
                continue
            assert set(re.findall("`([^`]+)`", content)) <= case.errors.get(client.name, frozenset()), STALE
            assert (DOES_NOT_RECOVER in content) == (client.name in case.replaced), STALE
    assert render(cells) == text, STALE
