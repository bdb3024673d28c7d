"""Rules that make users of subjects: those of Kafka's own documentation and tests among them."""

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
        pytest.param("DEFAULT", DUKE, DUKE, id="the default is the subject"),
        pytest.param("", DUKE, None, id="no rule is for nobody"),
        pytest.param(RULES, DUKE, "Duke", id="the first rule that fits"),
        pytest.param(RULES, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme", id="in lower case"),
        pytest.param(RULES, "cn=duke.1,OU=JavaSoft", "DUKE.1", id="in upper case"),
        pytest.param(RULES, "OU=JavaSoft", "OU=JavaSoft", id="the default as the last one"),
        pytest.param("RULE:^CN=(.*),OU=x$/$1/", DUKE, None, id="a rule that does not fit"),
        pytest.param(r"RULE:^CN=([^,]*),.*$/$1\/$2/", DUKE, "Duke/$2", id="escapes, and a group that there is not"),
        pytest.param("RULE:^CN=(.*?),.*$/$12x/", DUKE, "Duke2x", id="as many digits as make a group"),
        pytest.param("RULE:^CN=(?<name>.*?),.*$/${name}/", DUKE, "Duke", id="a group with a name"),
        pytest.param("RULE:.*/admin/L", MAIL, "adminadmin", id="what matches nothing at the end counts, as in Java"),
        pytest.param("RULE:^.*$/a,b/ , DEFAULT", DUKE, "a,b", id="a comma within a rule"),
    ],
)
def test_a_subject_becomes_a_user(rules: str, subject: str, user: str | None) -> None:
    assert name_of(parse_rules(rules), subject) == user


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        pytest.param("default", "invalid rule default;", id="another case"),
        pytest.param("DEFAULT/L", "invalid rule DEFAULT/L;", id="a default with a flag"),
        pytest.param("RULE:CN=(.*?),OU=ServiceUsers.*/$1", "invalid rule RULE:CN=(.*?);", id="no slash at the end"),
        pytest.param("RULE:^CN=(.*?),OU=U.*$/$1/LU", "invalid rule RULE:^CN=(.*?),OU=U.*$/$1/LU;", id="two cases"),
        pytest.param("RULE:(.*)/${n}/", "RULE:(.*)/${n}/: the pattern has no group n", id="a group that there is not"),
        pytest.param("RULE:(/a/", "RULE:(/a/: missing ), unterminated subpattern", id="a pattern that is none"),
    ],
)
def test_what_is_no_rule_is_said(rules: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_rules(rules)
