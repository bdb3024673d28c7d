"""`ssl.principal.mapping.rules`: the user for a certificate's subject (KIP-371; Kafka's SslPrincipalMapper).

Commas separate rules; the first match applies. `DEFAULT` is the whole subject. `RULE:PATTERN/REPLACEMENT/` requires a
match of the whole subject; a final `L` or `U` converts the case. Different on purpose: patterns are Python's regular
expressions, and invalid rules are errors at start-up. Where Java fails for each client (a missing group in a pattern
without groups, a single `$`), the text is literal.
"""

import re
from typing import NamedTuple

_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER = re.compile(_RULE)
_JAVA_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
_REFERENCE = re.compile(r"\\(.)|\$(\d+)|\$\{(\w+)\}")


class Rule(NamedTuple):
    """One mapping rule; without a pattern it is DEFAULT."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""  # L, U, or neither

    def apply(self, subject: str) -> str | None:
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
    return [_parse(match.group(1)) for match in _SPLITTER.finditer(text.strip()) if match.group(1)]


def name_of(rules: list[Rule], subject: str) -> str | None:
    names = (rule.apply(subject) for rule in rules)
    return next((name for name in names if name is not None), None)


def _parse(text: str) -> Rule:
    match = _PARSER.match(text)
    if match is None or match.end() != len(text):
        raise ValueError(f"invalid rule {text}; expected DEFAULT or RULE:PATTERN/REPLACEMENT/[LU]")
    default, pattern, replacement, case, _ = match.groups()
    if default:
        return Rule()
    try:
        compiled = re.compile(_JAVA_NAMED_GROUP.sub("(?P<", pattern))
    except re.error as error:
        raise ValueError(f"{text}: {error}") from None
    for reference in _REFERENCE.finditer(replacement):
        if reference[3] is not None and reference[3] not in compiled.groupindex:
            raise ValueError(f"{text}: the pattern has no group {reference[3]}")
    return Rule(compiled, replacement, case)


def _group(match: re.Match[str], digits: str) -> str:
    # As in Java: the longest prefix of the digits that is an existing group; the other digits are text.
    groups = match.re.groups
    for end in range(len(digits), 0, -1):
        if int(digits[:end]) <= groups:
            return (match.group(int(digits[:end])) or "") + digits[end:]
    return f"${digits}"
