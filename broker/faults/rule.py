"""A rule as it is written, in TOML, YAML, JSON or Python: flat, every field of it optional but the action.

    rule = what it matches + how often it hits that + what it does

Raw values are kept as they were given; what they mean is found out, and what is wrong with them told, when a rule is
added (fault.py).
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from sluice.broker.faults.actions.action import Action
from sluice.broker.faults.matching.durations import Duration
from sluice.broker.faults.matching.errors import FaultError, RuleProblem
from sluice.text.did_you_mean import meant
from sluice.text.typed_decoding import DecodeError, read

from .actions import KINDS, AnyAction


class _Named(msgspec.Struct):
    """An action alone."""

    action: AnyAction


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to do to which requests, connections or brokers, and how often."""

    action: Annotated[AnyAction | str, Meta(description="what it does; a name alone is one with its defaults")]
    id: Annotated[str | None, Meta(description="its name; given if left out: fault-1, fault-2, ...")] = None

    # What it matches.
    broker: Annotated[int | list[int] | None, Meta(description="node id, or several")] = None
    api: Annotated[str | list[str] | None, Meta(description="name of an API such as Produce, or several")] = None
    version: Annotated[str | int | None, Meta(description="of the API: 9, 5-9, -3, 9-")] = None
    client_id: Annotated[str | None, Meta(description="pattern, as all texts here: * and ? and [abc]")] = None
    software_name: Annotated[str | None, Meta(description="as ApiVersions told it, such as apache-kafka-java")] = None
    software_version: Annotated[str | None, Meta(description="as ApiVersions told it")] = None
    principal: Annotated[str | None, Meta(description="who sends, such as User:alice")] = None
    listener: Annotated[str | None, Meta(description="name of the listener that the client came to")] = None
    topic: Annotated[str | None, Meta(description="that the request names")] = None
    partition: Annotated[int | list[int] | None, Meta(description="that the request names, or several")] = None
    group: Annotated[str | None, Meta(description="that the request names")] = None
    transactional_id: Annotated[str | None, Meta(description="that the request names")] = None
    connection_older_than: Annotated[Duration | None, Meta(description="since it was made")] = None
    connection_younger_than: Annotated[Duration | None, Meta(description="since it was made")] = None
    request: Annotated[int | None, Meta(description="the nth of a connection's that match all of the above")] = None
    after: Annotated[Duration | None, Meta(description="from then on, since the rule was added")] = None
    until: Annotated[Duration | None, Meta(description="until then, since the rule was added")] = None
    probability: Annotated[float | None, Meta(description="of each that matches all else to be hit")] = None
    seed: Annotated[int | None, Meta(description="of its own chance; left out: from the broker's and its id")] = None

    # How often it hits what it matches: at most one of these; none: always.
    times: Annotated[int | None, Meta(description="the first so many")] = None
    during: Annotated[Duration | None, Meta(description="for so long, from the first on")] = None
    on: Annotated[list[int] | None, Meta(description="those of these numbers, the first is 1")] = None
    schedule: Annotated[str | None, Meta(description="such as '3 fail, 2 pass, repeat'")] = None

    @property
    def the_action(self) -> Action:
        """Raises RuleProblem for a name that is no action's, or that alone does not say enough."""
        if not isinstance(self.action, str):
            return self.action
        if self.action not in KINDS:
            hint = meant(self.action, KINDS)
            raise RuleProblem("action", f"there is no action {self.action!r}{hint} actions are {', '.join(KINDS)}")
        try:
            return read({"action": {"kind": self.action}}, _Named).action
        except DecodeError as error:
            name = error.path.removeprefix("action.")
            raise RuleProblem("action", f"{self.action} is not enough: {name} {error.problem}") from None


def parse_rule(given: object, at: str) -> Rule:
    """A rule from what a file or a request has; `at` is where that is, such as `faults[0]`. Raises FaultError."""
    if isinstance(given, Rule):
        return given
    try:
        return read(given, Rule)
    except DecodeError as error:
        raise FaultError(f"{at}.{error.path}" if error.path else at, error.problem) from None


def rule_schema() -> dict[str, object]:
    """The JSON Schema of a rule, with its definitions."""
    return msgspec.json.schema(Rule)


# What msgspec has to know of these types it finds out as it first reads one, and it dies of two threads that do so at
# once, each with a broker. An import is done by one.
parse_rule({"action": "close"}, "")
