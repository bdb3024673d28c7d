"""All rules: the `RULE` of each module in the folders of `sluice/lint/rules/`."""

import pkgutil
from functools import cache
from importlib import import_module
from typing import Any

from . import rules
from .rule import Rule, Severity


@cache
def all_rules() -> dict[str, Rule[Any]]:
    """Return the rules by id: by folder, then by severity, then by id."""
    found: list[tuple[str, int, Rule[Any]]] = []
    for folder in pkgutil.iter_modules(rules.__path__, f"{rules.__name__}."):
        for module in pkgutil.iter_modules(import_module(folder.name).__path__, f"{folder.name}."):
            rule: Rule[Any] = import_module(module.name).RULE
            found.append((folder.name, list(Severity).index(rule.severity), rule))
    return {rule.id: rule for *_, rule in sorted(found, key=lambda each: (each[0], each[1], each[2].id))}
