"""Rules that are chosen on the command line."""

from collections.abc import Collection, Mapping
from typing import Any

import click

from sluice.errors import ConfigError
from sluice.lint.registry import all_rules
from sluice.lint.rule import Rule
from sluice.text.error_text import one_of


def complete_rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in all_rules() if name.startswith(incomplete)]


def chosen_rules(ids: Collection[str], option: str = "--rule") -> Mapping[str, Rule[Any]]:
    """Return the rules with these ids, or all of them without any. Raises ConfigError."""
    rules = all_rules()
    for each in ids:
        if each not in rules:
            raise ConfigError(f"{option}: {one_of(rules, each)}")
    return {name: rule for name, rule in rules.items() if not ids or name in ids}
