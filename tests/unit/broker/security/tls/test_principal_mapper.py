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


@pytest.mark.parametrize(
    ("rules", "subject", "user"),
    [
        pytest.param("DEFAULT", DUKE, DUKE, id="DEFAULT returns the subject"),
        pytest.param("", DUKE, None, id="no rules"),
        pytest.param(RULES, DUKE, "Duke", id="first matching rule"),
        pytest.param(RULES, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme", id="lower case"),
        pytest.param(RULES, "cn=duke.1,OU=JavaSoft", "DUKE.1", id="upper case"),
        pytest.param(RULES, "OU=JavaSoft", "OU=JavaSoft", id="DEFAULT as the last rule"),
        pytest.param("RULE:^CN=(.*),OU=x$/$1/", DUKE, None, id="rule without a match"),
        pytest.param(r"RULE:^CN=([^,]*),.*$/$1\/$2/", DUKE, "Duke/$2", id="escape, and an unknown group"),
        pytest.param("RULE:^CN=(.*?),.*$/$12x/", DUKE, "Duke2x", id="longest valid group number"),
        pytest.param("RULE:^CN=(?<name>.*?),.*$/${name}/", DUKE, "Duke", id="named group"),
        pytest.param("RULE:.*/admin/L", MAIL, "adminadmin", id="empty match at the end counts, as in Java"),
        pytest.param("RULE:^.*$/a,b/ , DEFAULT", DUKE, "a,b", id="comma within a rule"),
    ],
)
def test_subject_is_mapped_to_a_user(rules: str, subject: str, user: str | None) -> None:
    assert name_of(parse_rules(rules), subject) == user


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        pytest.param("default", "invalid rule default;", id="lower-case default"),
        pytest.param("DEFAULT/L", "invalid rule DEFAULT/L;", id="DEFAULT with a flag"),
        pytest.param("RULE:CN=(.*?),OU=ServiceUsers.*/$1", "invalid rule RULE:CN=(.*?);", id="no slash at the end"),
        pytest.param("RULE:^CN=(.*?),OU=U.*$/$1/LU", "invalid rule RULE:^CN=(.*?),OU=U.*$/$1/LU;", id="two case flags"),
        pytest.param("RULE:(.*)/${n}/", "RULE:(.*)/${n}/: the pattern has no group n", id="unknown group"),
        pytest.param("RULE:(/a/", "RULE:(/a/: missing ), unterminated subpattern", id="invalid pattern"),
    ],
)
def test_invalid_rule_is_rejected(rules: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_rules(rules)
