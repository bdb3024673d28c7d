"""`ssl.principal.mapping.rules`: what user the subject of a certificate is (KIP-371; Kafka's SslPrincipalMapper).

Rules are separated by commas, the first that fits counts: `DEFAULT` takes the whole subject, and
`RULE:PATTERN/REPLACEMENT/` a subject that the pattern fits as a whole, with `L` or `U` behind it in lower or upper
case. Groups are `$1`; one that the pattern does not have is text. Different on purpose: patterns are Python's regular
expressions, which read all that Java's do but a few classes; what cannot be read is said at the start, and of what Java
fails on with each client (a group that there is not, where there is none at all, or a lone `$`) the text is taken.
"""

import re
from typing import NamedTuple

_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER = re.compile(_RULE)
_JAVA_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
# In a replacement: an escaped character, a group by number, a group by name.
_REFERENCE = re.compile(r"\\(.)|\$(\d+)|\$\{(\w+)\}")


class Rule(NamedTuple):
    """One rule; without a pattern it is DEFAULT."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""  # L, U, or neither

    def apply(self, subject: str) -> str | None:
        """The name of the user; None: the rule does not fit."""
        if self.pattern is None:
            return subject
        if self.pattern.fullmatch(subject) is None:
            return None
        name = self.pattern.sub(self._expand, subject)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name

    def _expand(self, match: re.Match[str]) -> str:
        def expand(reference: re.Match[str]) -> str:
            escaped, number, name = reference.groups()
            if escaped is not None:
                return str(escaped)
            return str(match.group(name) or "") if number is None else _group(match, number)

        return _REFERENCE.sub(expand, self.replacement)


def parse_rules(text: str) -> list[Rule]:
    """The rules in a list of them; raises ValueError, in words, for one that cannot be read."""
    return [_parse(match.group(1)) for match in _SPLITTER.finditer(text.strip()) if match.group(1)]


def name_of(rules: list[Rule], subject: str) -> str | None:
    """The user that a subject is; None: no rule fits, and nobody gets in."""
    names = (rule.apply(subject) for rule in rules)
    return next((name for name in names if name is not None), None)


def _parse(text: str) -> Rule:
    match = _PARSER.match(text)
    if match is None or match.end() != len(text):
        raise ValueError(f"{text} is no rule")
    default, pattern, replacement, case, _ = match.groups()
    if default:
        return Rule()
    try:
        compiled = re.compile(_JAVA_NAMED_GROUP.sub("(?P<", pattern))
    except re.error as error:
        raise ValueError(f"{text}: {error}") from None
    for reference in _REFERENCE.finditer(replacement):
        if reference[3] is not None and reference[3] not in compiled.groupindex:
            raise ValueError(f"{text}: its pattern has no group {reference[3]}")
    return Rule(compiled, replacement, case)


def _group(match: re.Match[str], digits: str) -> str:
    # As Java: as many digits as make a group that there is; the others are text.
    groups = match.re.groups
    for end in range(len(digits), 0, -1):
        if int(digits[:end]) <= groups:
            return (match.group(int(digits[:end])) or "") + digits[end:]
    return f"${digits}"
