"""The base classes of actions. There are three, by what they act on.

request     acts on a request: before it is handled, when its response is ready, when that is sent
connection  acts on a connection when it is made and, if the class says so, on open ones
state       is in force while its rule is: begun once, and undone when the rule ends

An action is its own configuration: a struct, tagged by `kind`, of which one object serves every hit of its rule. The
state of one hit is its `RuleHit`. To add an action, add a class with a tag to a file here, and its name to the union of
actions/__init__.py. Validation, schema and documentation are made from that.
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

    from sluice.broker.faults.interfaces import ActiveRule, InterceptedRequest
    from sluice.broker.faults.target import FaultedBroker, FaultTarget
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
    """Return the node ids of the brokers of a cluster with this config."""
    first = config.integer("node.id")
    return range(first, first + config.integer("sluice.brokers"))


class RuleHit(NamedTuple):
    """One request that a rule hits."""

    fault: "ActiveRule"
    action: "RequestAction"  # of the rule
    drawn: float  # the random number that the action has drawn for this hit


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"):
    """What a rule does."""

    # The fields of a rule that have a meaning for the action.
    FIELDS: ClassVar[frozenset[str]]
    SUMMARY: ClassVar[str]  # a line of documentation
    DRAWS: ClassVar[bool] = False  # whether it draws random numbers

    @property
    def kind(self) -> str:
        """The name of the action in a rule."""
        return str(type(self).__struct_config__.tag)

    def check(self, match: Match) -> None:
        """Raise RuleProblem, with a path from the rule on, if the action cannot work on what the rule matches."""

    def check_cluster(self, fault: "ActiveRule", config: Config) -> None:
        """Raise RuleProblem if the action cannot work in a cluster with this config."""

    def applies_to(self, broker: "FaultedBroker") -> bool:
        """Whether the action has an effect on matching requests of a broker now; if not, they are not counted."""
        return True


class RequestAction(Action, frozen=True):
    """Acts on a request on its way."""

    FIELDS: ClassVar[frozenset[str]] = _ALWAYS | _OF_REQUESTS | _TIME | _CHANCE | _SCHEDULE

    def can_hit(self, api_key: int, version: int) -> bool:
        """Whether the action has an effect on requests of this API and version."""
        return True

    def draw(self, random: "Random") -> float:
        """Draw a random number when a request is hit: the same seed and traffic give the same numbers."""
        return 0.0

    def before(self, intercepted: "InterceptedRequest", hit: RuleHit) -> Message | Outcome | None:
        """Act before the request is handled. Return None to continue, or a response or PARKED to skip the handler."""
        return None

    def after(self, intercepted: "InterceptedRequest", hit: RuleHit, outcome: Message | Outcome) -> Message | Outcome:
        """Act when the response is ready, before quotas charge it. Return the response to send instead, or PARKED."""
        return outcome

    # A request without a response gets none of the following calls.

    def answering(
        self, intercepted: "InterceptedRequest", hit: RuleHit, body: list[bytes | memoryview]
    ) -> list[bytes | memoryview]:
        """Return the encoded response to send instead, before the journal records it."""
        return body

    def leaving(self, intercepted: "InterceptedRequest", hit: RuleHit, frame: ResponseFrame) -> None:
        """Change the response frame, size and header included, before it is sent."""

    def sent(self, intercepted: "InterceptedRequest", hit: RuleHit) -> None:
        """Act when the response was sent."""


class ConnectionAction(Action, frozen=True):
    """Acts on a connection. Behind TLS a connection is made when it has shaken hands."""

    FIELDS: ClassVar[frozenset[str]] = _ALWAYS | {"broker", "listener"} | _TIME | _CHANCE | _SCHEDULE
    HITS_OPEN: ClassVar[bool] = False  # whether it also acts on connections that are open when the rule begins
    # Whether the action itself counts hits, by `ActiveRule.hit_connection`.
    REPORTS_HITS: ClassVar[bool] = False

    def applies_to_listener(self, server: "SocketServer", listener: str) -> bool:
        """Whether the action has an effect on connections of a listener."""
        return True

    def on_listen(self, fault: "ActiveRule", server: "SocketServer", hits: Callable[[str], bool]) -> Undo | None:
        """Act on a broker's listeners when the rule comes into force or the broker begins to listen.

        `hits` decides on a listener, or on one client of it, by the listener's name. Return what undoes the action.
        """
        return None

    def on_connected(self, fault: "ActiveRule", server: "SocketServer", connection: "Connection") -> Undo | None:
        """Act on a connection. Return what undoes the action if the rule ends while the connection is open."""
        raise NotImplementedError


class StateAction(Action, frozen=True):
    """Is in force while its rule is."""

    FIELDS: ClassVar[frozenset[str]] = _ALWAYS | {"broker"} | _TIME | {"during"}

    def begin(self, fault: "ActiveRule", target: "FaultTarget") -> Undo:
        """Bring the state about, and return what undoes it. Raises SluiceError if it is not possible now."""
        raise NotImplementedError
