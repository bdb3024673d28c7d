"""Rules of lint as tables: a journal for which a rule fires, one of healthy use, and one without evidence."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from sluice.lint.registry import all_rules
from sluice.lint.run import lint

from .journals import Journal


class RuleCase(NamedTuple):
    """The journals of a rule.

    fires: several findings of the rule are equally good; the text of the first one has `says`
    healthy: the rule sees its subject, and nothing is wrong
    blind: the journal lacks what the rule needs, such as enough of its subject, or fields of an older version
    """

    says: str
    fires: Callable[[], Journal]
    healthy: Callable[[], Journal]
    blind: Callable[[], Journal]


def texts(rule: str, journal: Journal) -> list[str]:
    """Return what the rule reports about the journal."""
    found = [each for each in lint(journal.events).findings if each.rule == rule]
    return [evidence.text for each in found for evidence in each.evidence]


def rule_tests(cases: Mapping[str, RuleCase], *modules: str) -> tuple[Callable[..., None], Callable[[], None]]:
    """Return a test of each case, and one that these modules of `sluice/lint/rules/` have no other rules."""

    @pytest.mark.parametrize("kind", ["fires", "healthy", "blind"])
    @pytest.mark.parametrize(("rule", "case"), cases.items(), ids=cases)
    def test_rule(rule: str, case: RuleCase, kind: str) -> None:
        found = texts(rule, getattr(case, kind)())
        if kind == "fires":
            assert found, "expected a finding"
            assert case.says in found[0], f"expected {case.says!r}, got {found[0]!r}"
        else:
            assert not found, f"expected no finding, got {found[0]!r}"

    def test_all_rules_have_a_case() -> None:
        rules = {rule.id for rule in all_rules().values() if rule.check.__module__.split(".")[-1] in modules}
        assert {*cases} == rules, f"expected cases of all rules in {modules}"

    return test_rule, test_all_rules_have_a_case


def silence_test(silent: Mapping[str, tuple[str, Callable[[], Journal]]]) -> Callable[..., None]:
    """Return a test that a rule is silent, given by what it is silent on."""

    @pytest.mark.parametrize(("rule", "journal"), silent.values(), ids=silent)
    def test_silence(rule: str, journal: Callable[[], Journal]) -> None:
        found = texts(rule, journal())
        assert not found, f"expected no finding, got {found[0]!r}"

    return test_silence
