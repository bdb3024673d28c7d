"""A rule as written in TOML, YAML, JSON or Python. It is flat, and only the action is required.

Values are kept as given, and interpreted when the rule is added (fault.py).
"""

from functools import reduce
from operator import or_
from typing import Annotated

import msgspec
from msgspec import Meta

from sluice.broker.faults.matching.conditions import Conditions
from sluice.broker.faults.matching.values import RuleProblem
from sluice.errors import FaultError
from sluice.text.error_text import one_of
from sluice.text.typed_decoding import DecodeError, read

from .actions import KINDS, AnyAction
from .fault import Action

_ACTION = "an action, or the name of one with default fields"


class _Named(msgspec.Struct):
    action: AnyAction


class Rule(Conditions, frozen=True):
    """A fault rule: an action, the requests, connections or brokers that it applies to, and how often."""

    action: Annotated[AnyAction | str, Meta(description=_ACTION)]

    @property
    def the_action(self) -> Action:
        """The action. Raises RuleProblem for an unknown name, or one with required fields."""
        if not isinstance(self.action, str):
            return self.action
        if self.action not in KINDS:
            raise RuleProblem("action", one_of(KINDS, self.action))
        try:
            return read({"action": {"kind": self.action}}, _Named).action
        except DecodeError as error:
            name = error.path.removeprefix("action.")
            raise RuleProblem("action", f"{self.action} requires fields: {name} {error.problem}") from None


def parse_rule(given: object, at: str) -> Rule:
    """Return the rule in a file or a request; `at` is its path, such as `faults[0]`. Raises FaultError."""
    if isinstance(given, Rule):
        return given
    try:
        return read(given, Rule)
    except DecodeError as error:
        raise FaultError(f"{at}.{error.path}" if error.path else at, error.problem) from None


def rule_schema() -> dict[str, object]:
    return msgspec.json.schema(Rule)


def proxy_rule_schema() -> dict[str, object]:
    """Return the schema of a rule of a proxy, without the actions that it refuses."""
    possible = reduce(or_, (kind for kind in KINDS.values() if not kind.PROXY_REFUSAL), str)
    action = Annotated[possible, Meta(description=_ACTION)]  # type: ignore[valid-type]  # made at run time
    namespace = {"__doc__": Rule.__doc__}
    rule = msgspec.defstruct("Rule", [("action", action)], bases=(Conditions,), namespace=namespace, frozen=True)
    return msgspec.json.schema(rule)


# msgspec inspects these types at their first use, and crashes if two threads do so at once.
parse_rule({"action": "close"}, "")
