"""Every action of a fault rule and the clients in Python: which recover, what the others tell their application, and
that no record is lost that was acknowledged. What is expected is in fault_cases.py, with the reason.
"""

import logging
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sluice.broker.faults.actions import KINDS
from tests.clients.fault_cases import CASES
from tests.clients.fault_clients import FAULT_CLIENTS
from tests.clients.fault_runs import Case, Found, run
from tests.clients.fault_table import DOES_NOT_RECOVER, PAGE, besides, cell, render

STALE = "docs/faults-clients.md is out of date: `make fault-table` writes it"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What clients log of the faults they meet is what they are there for."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def problems(case: Case, name: str, found: Found) -> list[str]:
    """What a client did that was not expected of it."""
    may_see = case.errors.get(name, frozenset())
    replaced = case.replaced.get(name, frozenset())
    wrong = {
        "the fault has not hit it": not found.hits and name not in case.untouched,
        "the fault has hit it": bool(found.hits) and name in case.untouched,
        f"its application saw {sorted(found.errors - may_see)}": bool(found.errors - may_see),
        f"its application had to replace {sorted(found.replaced)}": found.replaced != replaced,
        f"{found.lost} were acknowledged and are lost": bool(found.lost) and not case.loses,
        f"{found.unread} were not read": bool(found.unread) and not case.loses,
        f"{found.repeated} are twice in the log": bool(found.repeated),
        f"{found.read_twice} were read twice": bool(found.read_twice) and not case.reads_twice,
    }
    return [f"{name}: {what}" for what, is_so in wrong.items() if is_so]


# Clients that are closed in the middle of something leave loose ends, of which their own finalizers complain.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_clients_live_through(case: Case, record_property: Callable[[str, object], None]) -> None:
    with ThreadPoolExecutor(len(FAULT_CLIENTS)) as pool:
        found = [*pool.map(lambda client: run(client, case), FAULT_CLIENTS)]
    record_property("fault case", case.title)
    told = []
    for client, one in zip(FAULT_CLIENTS, found, strict=True):
        record_property(client.name, case.untouched.get(client.name) or cell(one))
        told += problems(case, client.name, one)
    assert told == []


def test_every_action_has_a_case() -> None:
    assert {case.kind for case in CASES} == KINDS.keys()


def cells_of(line: str) -> list[str]:
    return [one.strip() for one in line.strip().strip("|").split("|")]


def test_the_page_has_every_case_and_says_what_the_tests_would_find() -> None:
    text = PAGE.read_text()
    body = [cells_of(line) for line in text.splitlines() if line.startswith("|")][2:]
    assert [row[1] for row in body] == [case.title for case in CASES], STALE
    cells = {}
    for case, row in zip(CASES, body, strict=True):
        assert row[-1] == besides(case), STALE
        for client, told in zip(FAULT_CLIENTS, row[2:-1], strict=True):
            cells[case.title, client.name] = told
            assert told != "not run", STALE
            if client.name in case.untouched:
                assert told == case.untouched[client.name], STALE
                continue
            assert set(re.findall("`([^`]+)`", told)) <= case.errors.get(client.name, frozenset()), STALE
            assert (DOES_NOT_RECOVER in told) == (client.name in case.replaced), STALE
    assert render(cells) == text, STALE
