"""A rule as written in TOML, YAML, JSON or Python. It is flat, and only the action is required.

Values are kept as given, and interpreted when the rule is added (fault.py).
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from sluice.broker.faults.actions.action import Action
from sluice.broker.faults.matching.durations import Duration
from sluice.broker.faults.matching.errors import RuleProblem
from sluice.errors import FaultError
from sluice.text.error_text import one_of
from sluice.text.typed_decoding import DecodeError, read

from .actions import KINDS, AnyAction


class _Named(msgspec.Struct):
    action: AnyAction


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A fault rule: an action, the requests, connections or brokers that it applies to, and how often."""

    action: Annotated[AnyAction | str, Meta(description="an action, or the name of one with default fields")]
    id: Annotated[str | None, Meta(description="name of the rule; default: fault-1, fault-2, ...")] = None

    # Conditions
    broker: Annotated[int | list[int] | None, Meta(description="node id, or several")] = None
    api: Annotated[str | list[str] | None, Meta(description="API name such as Produce, or several")] = None
    version: Annotated[str | int | None, Meta(description="API version: 9, 5-9, -3, 9-")] = None
    client_id: Annotated[str | None, Meta(description="pattern with * and ? and [abc], as for all texts here")] = None
    software_name: Annotated[str | None, Meta(description="from ApiVersions, such as apache-kafka-java")] = None
    software_version: Annotated[str | None, Meta(description="from ApiVersions")] = None
    principal: Annotated[str | None, Meta(description="authenticated principal, such as User:alice")] = None
    listener: Annotated[str | None, Meta(description="name of the connection's listener")] = None
    topic: Annotated[str | None, Meta(description="topic in the request")] = None
    partition: Annotated[int | list[int] | None, Meta(description="partition in the request, or several")] = None
    group: Annotated[str | None, Meta(description="group in the request")] = None
    transactional_id: Annotated[str | None, Meta(description="transactional id in the request")] = None
    connection_older_than: Annotated[Duration | None, Meta(description="minimum age of the connection")] = None
    connection_younger_than: Annotated[Duration | None, Meta(description="maximum age of the connection")] = None
    request: Annotated[int | None, Meta(description="only the nth matching request of each connection")] = None
    after: Annotated[Duration | None, Meta(description="start, since the rule was added")] = None
    until: Annotated[Duration | None, Meta(description="end, since the rule was added")] = None
    probability: Annotated[float | None, Meta(description="probability of hitting a match")] = None
    seed: Annotated[int | None, Meta(description="random seed; default: from the cluster's seed and the id")] = None

    # Frequency: at most one of these. Without any, the rule hits every match.
    times: Annotated[int | None, Meta(description="number of matches to hit, from the first")] = None
    during: Annotated[Duration | None, Meta(description="duration from the first match")] = None
    on: Annotated[list[int] | None, Meta(description="numbers of the matches to hit; the first is 1")] = None
    schedule: Annotated[str | None, Meta(description="phases, such as '3 fail, 2 pass, repeat'")] = None

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


# msgspec inspects these types at their first use, and crashes if two threads do so at once.
parse_rule({"action": "close"}, "")
