"""Every rule is complete and consistent; the registry finds all of them."""

import re
from pathlib import Path

import pytest

from sluice.lint import rules
from sluice.lint.registry import all_rules
from sluice.lint.rule import Rule

FOLDER = Path(rules.__path__[0])
RULES = list(all_rules().values())


def test_each_decorated_function_is_a_rule_with_its_name() -> None:
    decorated = [name for path in FOLDER.glob("*.py") for name in re.findall(r"(?m)^\)\ndef (\w+)\(", path.read_text())]
    assert sorted(name.replace("_", "-") for name in decorated) == sorted(all_rules())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_has_all_texts(rule: Rule[object]) -> None:
    texts = [rule.title, rule.why, rule.silent, rule.citation.where, rule.citation.words]
    assert all(texts)
    assert all(text == text.strip() for text in texts)
    assert rule.why.endswith(".")
    assert rule.silent.endswith(".")
    assert not rule.title.endswith(".")
    assert rule.citation.url.startswith(("https://kafka.apache.org/", "https://cwiki.apache.org/"))
    assert rule.remedy.java
