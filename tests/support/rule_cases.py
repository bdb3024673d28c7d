"""Rules of lint as tables: a journal for which a rule fires, one of healthy use, and one without evidence."""

from collections.abc import Callable
from typing import NamedTuple

from sluice.lint.registry import all_rules
from sluice.lint.run import lint

from .journals import Journal


class RuleCase(NamedTuple):
    """A rule and its journals.

    fires: several findings of the rule are equally good; the text of the first one has `says`
    healthy: the rule sees its subject, and nothing is wrong
    blind: the journal lacks what the rule needs, such as enough of its subject, or fields of an older version
    """

    rule: str
    says: str
    fires: Callable[[], Journal]
    healthy: Callable[[], Journal]
    blind: Callable[[], Journal]


def texts(rule: str, journal: Journal) -> list[str]:
    """Return what the rule reports about the journal."""
    found = [each for each in lint(journal.events).findings if each.rule == rule]
    return [evidence.text for each in found for evidence in each.evidence]


def rules_of(folder: str) -> set[str]:
    """Return the ids of the rules in a folder of `sluice/lint/rules/`."""
    return {rule.id for rule in all_rules().values() if rule.check.__module__.split(".")[-2] == folder}
