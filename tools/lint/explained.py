"""Why findings about clients with their defaults are true."""

from collections.abc import Iterable, Mapping, Sequence

from tools.lint.verdicts import Reported

ALL = "*"

# By rule and client, or ALL.
REASONS: Mapping[tuple[str, str], str] = {}


def reason_for(rule: str, client: str) -> str:
    """Return the reason; "" without one."""
    return REASONS.get((rule, client)) or REASONS.get((rule, ALL), "")


def unexplained(found: Iterable[Reported]) -> Sequence[Reported]:
    """Return the findings that nobody has found to be true."""
    return [each for each in found if not reason_for(each.rule, each.client)]
