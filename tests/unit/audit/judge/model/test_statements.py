import re

import pytest

from sluice.audit.judge.judging import RULES
from sluice.audit.judge.model.statements import STATEMENTS, Statement

ALL = list(STATEMENTS.values())


def numbers_of(kip: str) -> list[int]:
    return [int(name.partition("/")[2]) for name in STATEMENTS if name.startswith(f"{kip}/")]


@pytest.mark.parametrize(("kip", "numbers"), [("KIP-580", 18), ("KIP-144", 15), ("KIP-91", 16), ("KIP-572", 13)])
def test_a_kip_has_all_its_statements_in_their_order(kip: str, numbers: int) -> None:
    assert numbers_of(kip) == list(range(1, numbers + 1))


def test_of_kip_13_only_what_clients_do_is_there() -> None:
    assert numbers_of("KIP-13") == [20]


@pytest.mark.parametrize("statement", ALL, ids=lambda statement: statement.id)
def test_what_can_be_observed_has_probes_and_a_rule_and_what_cannot_a_reason(statement: Statement) -> None:
    assert bool(statement.probes) == (not statement.unobservable)
    assert (statement.id in RULES) == (not statement.unobservable)


@pytest.mark.parametrize("statement", ALL, ids=lambda statement: statement.id)
def test_a_statement_is_one_sentence_with_its_kip(statement: Statement) -> None:
    assert statement.text.endswith(".")
    assert re.fullmatch(r"KIP-\d+", statement.kip)
    assert statement.roles


def test_no_rule_is_about_nothing() -> None:
    assert set(RULES) <= set(STATEMENTS)
