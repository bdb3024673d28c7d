import re

import pytest

from sluice.audit.judge.judging import RULES
from sluice.audit.judge.model.statements import STATEMENTS, Statement

ALL = list(STATEMENTS.values())


def numbers_of(kip: str) -> list[int]:
    return [int(name.partition("/")[2]) for name in STATEMENTS if name.startswith(f"{kip}/")]


@pytest.mark.parametrize(("kip", "numbers"), [("KIP-580", 18), ("KIP-144", 15), ("KIP-91", 16), ("KIP-572", 13)])
def test_kip_has_all_its_statements_in_order(kip: str, numbers: int) -> None:
    assert numbers_of(kip) == list(range(1, numbers + 1))


def test_kip_13_has_only_client_statements() -> None:
    assert numbers_of("KIP-13") == [20]


@pytest.mark.parametrize("statement", ALL, ids=lambda statement: statement.id)
def test_observable_statement_has_probes_and_a_rule_and_others_a_reason(statement: Statement) -> None:
    assert bool(statement.probes) == (not statement.unobservable)
    assert (statement.id in RULES) == (not statement.unobservable)


@pytest.mark.parametrize("statement", ALL, ids=lambda statement: statement.id)
def test_statement_is_one_sentence_with_its_kip(statement: Statement) -> None:
    assert statement.text.endswith(".")
    assert re.fullmatch(r"KIP-\d+", statement.kip)
    assert statement.roles


def test_every_rule_belongs_to_a_statement() -> None:
    assert set(RULES) <= set(STATEMENTS)
