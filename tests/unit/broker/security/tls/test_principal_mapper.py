"""Rules that map subjects to users, including those of Kafka's documentation and tests."""

import re

import pytest

from sluice.broker.security.tls.principal_mapper import name_of, parse_rules

DUKE = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
MAIL = "CN=duke@example.com,OU=SME,O=mycp,L=Fulton,ST=MD,C=US"
RULES = r"""RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,
RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,
RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U,
DEFAULT"""


MAPPED = {
    "DEFAULT returns the subject": ("DEFAULT", DUKE, DUKE),
    "no rules": ("", DUKE, None),
    "first matching rule": (RULES, DUKE, "Duke"),
    "lower case": (RULES, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
    "upper case": (RULES, "cn=duke.1,OU=JavaSoft", "DUKE.1"),
    "DEFAULT as the last rule": (RULES, "OU=JavaSoft", "OU=JavaSoft"),
    "rule without a match": ("RULE:^CN=(.*),OU=x$/$1/", DUKE, None),
    "escape, and an unknown group": (r"RULE:^CN=([^,]*),.*$/$1\/$2/", DUKE, "Duke/$2"),
    "longest valid group number": ("RULE:^CN=(.*?),.*$/$12x/", DUKE, "Duke2x"),
    "named group": ("RULE:^CN=(?<name>.*?),.*$/${name}/", DUKE, "Duke"),
    "empty match at the end counts, as in Java": ("RULE:.*/admin/L", MAIL, "adminadmin"),
    "comma within a rule": ("RULE:^.*$/a,b/ , DEFAULT", DUKE, "a,b"),
}


@pytest.mark.parametrize(("rules", "subject", "user"), MAPPED.values(), ids=MAPPED)
def test_subject_is_mapped_to_a_user(rules: str, subject: str, user: str | None) -> None:
    assert name_of(parse_rules(rules), subject) == user


INVALID_RULES = {
    "lower-case default": ("default", "invalid rule default;"),
    "DEFAULT with a flag": ("DEFAULT/L", "invalid rule DEFAULT/L;"),
    "no slash at the end": ("RULE:CN=(.*?),OU=ServiceUsers.*/$1", "invalid rule RULE:CN=(.*?);"),
    "two case flags": ("RULE:^CN=(.*?),OU=U.*$/$1/LU", "invalid rule RULE:^CN=(.*?),OU=U.*$/$1/LU;"),
    "unknown group": ("RULE:(.*)/${n}/", "RULE:(.*)/${n}/: the pattern has no group n"),
    "invalid pattern": ("RULE:(/a/", "RULE:(/a/: missing ), unterminated subpattern"),
}


@pytest.mark.parametrize(("rules", "problem"), INVALID_RULES.values(), ids=INVALID_RULES)
def test_invalid_rule_is_rejected(rules: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_rules(rules)
