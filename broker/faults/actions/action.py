"""The base classes of actions, by the object that they act on.

request     acts on a request: before it is handled, when its response is ready, when that is sent
connection  acts on new connections and, if the class specifies so, on open ones
state       begins with its rule, and is undone when the rule ends

An action is its own configuration: a struct, tagged by `kind`. One object serves all hits of its rule; a `RuleHit` has
the state of one hit. To add an action, add a tagged class to this folder, and its name to the union in __init__.py.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import msgspec

from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.undo import Undo
from sluice.broker.requests.context import Outcome
from sluice.config.broker_config import Config
from sluice.protocol.message import Message

from .response_frame import ResponseFrame

if TYPE_CHECKING:
    from random import Random  # noqa: TID251  (the type of what is injected; nothing is drawn from the module itself)

    from sluice.broker.broker import Broker
    from sluice.broker.faults.interfaces import ActiveRule, InterceptedRequest
    from sluice.broker.faults.target import FaultTarget
    from sluice.broker.network.connection import Connection
    from sluice.broker.network.socket_server import SocketServer

_SCHEDULE = frozenset({"times", "during", "on", "schedule"})
_TIME = frozenset({"after", "until"})
_CHANCE = frozenset({"probability", "seed"})
_ALWAYS = frozenset({"id", "action"})
_CLIENT = frozenset({"client_id", "software_name", "software_version", "principal", "listener"})
_ENTITIES = frozenset({"topic", "partition", "group", "transactional_id"})
_OTHER = frozenset({"connection_older_than", "connection_younger_than", "request"})
_OF_REQUESTS = frozenset({"broker", "api", "version"}) | _CLIENT | _ENTITIES | _OTHER


def node_ids_of(config: Config) -> range:
    first = config.integer("node.id")
    return range(first, first + config.integer("sluice.brokers"))


class RuleHit(NamedTuple):
    fault: "ActiveRule"
    action: "RequestAction"  # of the rule
    drawn: float  # the random number that the action drew for this hit


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"):
    """The effect of a rule; the docstring of a subclass describes it in the documentation."""

    # The fields of a rule that apply to the action.
    FIELDS: ClassVar[frozenset[str]]
    DRAWS: ClassVar[bool] = False  # whether the action draws random numbers

    @property
    def kind(self) -> str:
        return str(type(self).__struct_config__.tag)

    def check(self, match: Match) -> None:
        """Raise RuleProblem, with a path in the rule, if the action has no effect on the rule's matches."""

    def check_cluster(self, fault: "ActiveRule", config: Config) -> None:
        """Raise RuleProblem if the action cannot work in a cluster with this config."""

    def applies_to(self, broker: "Broker") -> bool:
        """Return whether the action affects matching requests now; others are not counted."""
        return True


class RequestAction(Action, frozen=True):
    FIELDS: ClassVar[frozenset[str]] = _ALWAYS | _OF_REQUESTS | _TIME | _CHANCE | _SCHEDULE

    def can_hit(self, api_key: int, version: int) -> bool:
        return True

    def draw(self, random: "Random") -> float:
        """Draw a number for a request that is hit."""
        return 0.0

    def before(self, intercepted: "InterceptedRequest", hit: RuleHit) -> Message | Outcome | None:
        """Act before the request is handled; return None, or a response or a `Wait` to skip the handler."""
        return None

    def after(self, intercepted: "InterceptedRequest", hit: RuleHit, outcome: Message | Outcome) -> Message | Outcome:
        """Act when the response is ready, before quotas charge it; return the response to send, or a `Wait`."""
        return outcome

    # A request without a response skips the following calls.

    def answering(
        self, intercepted: "InterceptedRequest", hit: RuleHit, body: list[bytes | memoryview]
    ) -> list[bytes | memoryview]:
        """Return the encoded response to send, before the journal records it."""
        return body

    def leaving(self, intercepted: "InterceptedRequest", hit: RuleHit, frame: ResponseFrame) -> None:
        """Change the response frame, with size and header, before it is sent."""

    def sent(self, intercepted: "InterceptedRequest", hit: RuleHit) -> None:
        """Act when the response was sent."""


class ConnectionAction(Action, frozen=True):
    """Acts on connections; with TLS, after the handshake."""

    FIELDS: ClassVar[frozenset[str]] = _ALWAYS | {"broker", "listener"} | _TIME | _CHANCE | _SCHEDULE
    HITS_OPEN: ClassVar[bool] = False  # whether it also acts on connections open at the start of the rule
    # Whether the action itself counts hits, by `ActiveRule.hit_connection`.
    REPORTS_HITS: ClassVar[bool] = False

    def applies_to_listener(self, server: "SocketServer", listener: str) -> bool:
        return True

    def on_listen(self, fault: "ActiveRule", server: "SocketServer", hits: Callable[[str], bool]) -> Undo | None:
        """Act on listeners at the start of the rule or of the broker; return how to undo that.

        `hits` decides on a listener, or one of its clients, by the listener's name.
        """
        return None

    def on_connected(self, fault: "ActiveRule", server: "SocketServer", connection: "Connection") -> Undo | None:
        """Act on a connection; return how to undo that."""
        raise NotImplementedError


class StateAction(Action, frozen=True):
    """Changes the state of the cluster while its rule is in force."""

    FIELDS: ClassVar[frozenset[str]] = _ALWAYS | {"broker"} | _TIME | {"during"}

    def begin(self, fault: "ActiveRule", target: "FaultTarget") -> Undo | None:
        """Return how to undo it, or None if it is permanent, which ends the rule. Raises SluiceError."""
        raise NotImplementedError
