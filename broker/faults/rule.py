"""A rule as it is written, in TOML, YAML, JSON or Python: flat, every field of it optional but the action.

    rule = what it matches + how often it hits that + what it does

Raw values are kept as they were given; what they mean is found out, and what is wrong with them told, when a rule is
added (fault.py).
"""

import re
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from sluice.did_you_mean import meant

from .actions import KINDS, AnyAction
from .actions.action import Action
from .durations import Duration
from .errors import FaultError, Problem

_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*)`")
_AT = re.compile(r"(.*) - at `(?:key in )?\$(.*)`", re.DOTALL)
_KIND_FIELD = "kind"


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
        """Raises Problem for a name that is no action's, or that alone does not say enough."""
        if not isinstance(self.action, str):
            return self.action
        try:
            action: AnyAction = msgspec.convert({_KIND_FIELD: self.action}, AnyAction)
        except msgspec.ValidationError as error:
            if self.action not in KINDS:
                hint = meant(self.action, KINDS)
                raise Problem(
                    "action", f"there is no action {self.action!r}{hint} actions are {', '.join(KINDS)}"
                ) from None
            raise Problem("action", f"{self.action} is not enough: {_problem(error)[1]}") from None
        return action


def parse_rule(given: object, at: str) -> Rule:
    """A rule from what a file or a request has; `at` is where that is, such as `faults[0]`. Raises FaultError."""
    if isinstance(given, Rule):
        return given
    try:
        return msgspec.convert(given, Rule)
    except msgspec.ValidationError as error:
        path, problem = _problem(error)
        raise FaultError(f"{at}{path}", problem + _accepted(given, path, problem)) from None


def rule_schema() -> dict[str, object]:
    """The JSON Schema of a rule, with its definitions."""
    return msgspec.json.schema(Rule)


def _problem(error: msgspec.ValidationError) -> tuple[str, str]:
    """Path, with a dot before it, and what is wrong there."""
    found = _AT.fullmatch(str(error))
    path, problem = (found[2], found[1]) if found is not None else ("", str(error))
    unknown = _UNKNOWN_FIELD.fullmatch(problem)
    if unknown is not None:
        return f"{path}.{unknown[1]}", "there is no such field"
    return path, problem[:1].lower() + problem[1:]


def _accepted(given: object, path: str, problem: str) -> str:
    """What would have been accepted, where the problem does not say."""
    name, is_unknown = path.rpartition(".")[2], problem == "there is no such field"
    if is_unknown and not path.startswith(".action."):
        return f"{meant(name, Rule.__struct_fields__)} fields are {', '.join(Rule.__struct_fields__)}"
    action = given.get("action") if isinstance(given, Mapping) else None
    kind = action.get(_KIND_FIELD) if isinstance(action, Mapping) else None
    if path == f".action.{_KIND_FIELD}":
        return f"{meant(str(kind), KINDS)} actions are {', '.join(KINDS)}"
    if not isinstance(kind, str) or kind not in KINDS:
        return ""
    if is_unknown:
        fields = (_KIND_FIELD, *KINDS[kind].__struct_fields__)
        return f"{meant(name, fields)} fields of {kind} are {', '.join(fields)}"
    words = _words(KINDS[kind], path.removeprefix(".action."))
    return f"; it is one of {', '.join(words)}" if words else ""


def _words(action: type[Action], name: str) -> list[str]:
    """Those that a field of an action may be, where it is one of a few."""
    described = msgspec.inspect.type_info(action)
    assert isinstance(described, msgspec.inspect.StructType)
    types = [field.type for field in described.fields if field.name == name]
    types = [each.type if isinstance(each, msgspec.inspect.Metadata) else each for each in types]
    return [str(word) for each in types if isinstance(each, msgspec.inspect.LiteralType) for word in each.values]


# What msgspec has to know of these types it finds out as it first reads one, and it dies of two threads that do so at
# once, each with a broker. An import is done by one.
parse_rule({"action": "close"}, "")
