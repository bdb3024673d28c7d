"""All rules: those of the modules in `sluice/lint/rules/`."""

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any

from . import rules
from .rule import Rule, Severity


@cache
def all_rules() -> dict[str, Rule[Any]]:
    """Return the rules by id: by module, then by severity, then by id."""
    found: list[tuple[str, int, Rule[Any]]] = []
    for module in pkgutil.iter_modules(rules.__path__, f"{rules.__name__}."):
        of_module = (each for each in vars(import_module(module.name)).values() if isinstance(each, Rule))
        found += [(module.name, list(Severity).index(rule.severity), rule) for rule in of_module]
    return {rule.id: rule for *_, rule in sorted(found, key=lambda each: (each[0], each[1], each[2].id))}
