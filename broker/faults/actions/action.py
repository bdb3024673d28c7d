"""What actions are made of. There are three classes of them, by what they act on.

request     hit by a request, on its way: before it is handled, when its answer is ready, when that leaves
connection  hit by a connection, as it is made and, where it says so, by those that are open
state       in force while their rule is: begun once, and undone when the rule ends

An action is its own configuration: a struct, tagged by `kind`, of which one object serves every hit of its rule. What
one hit needs to remember is in its `RuleHit`. To add one: a class with a tag in a file here, and its name in the union
of actions/__init__.py. The rest (validation, schema, documentation) is made from that.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import msgspec

from sluice.broker.faults.matching.match import Match
from sluice.broker.requests.context import Outcome
from sluice.config.broker_config import Config
from sluice.protocol.message import Message

if TYPE_CHECKING:
    from random import Random  # noqa: TID251  (the type of what is injected; nothing is drawn from the module itself)

    from sluice.broker.faults.interfaces import ActiveRule, InterceptedRequest
    from sluice.broker.faults.target import FaultedBroker, FaultTarget
    from sluice.broker.network.connection import Connection
    from sluice.broker.network.socket_server import SocketServer

    from .response_frame import ResponseFrame

_HOW_OFTEN = frozenset({"times", "during", "on", "schedule"})
_TIME = frozenset({"after", "until"})
_CHANCE = frozenset({"probability", "seed"})
_ALWAYS = frozenset({"id", "action"})
_WHO = frozenset({"client_id", "software_name", "software_version", "principal", "listener"})
_WHAT = frozenset({"topic", "partition", "group", "transactional_id"})
_WHICH = frozenset({"connection_older_than", "connection_younger_than", "request"})
_OF_REQUESTS = frozenset({"broker", "api", "version"}) | _WHO | _WHAT | _WHICH


def node_ids_of(config: Config) -> range:
    """Of the brokers of a cluster that is configured so."""
    first = config.integer("node.id")
    return range(first, first + config.integer("sluice.brokers"))


class RuleHit(NamedTuple):
    """One request that a rule hits."""

    fault: "ActiveRule"  # the rule
    action: "RequestAction"  # the rule's
    drawn: float  # what that drew for it


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"):
    """What a rule does."""

    # The fields of a rule that mean something for such an action.
    FIELDS: ClassVar[frozenset[str]]
    SUMMARY: ClassVar[str]  # a line of documentation
    DRAWS: ClassVar[bool] = False  # whether it leaves something to chance

    @property
    def kind(self) -> str:
        """As it is written in a rule."""
        return str(type(self).__struct_config__.tag)

    def check(self, match: Match) -> None:
        """Raises RuleProblem, its path from the rule on, for what cannot work on what the rule matches."""

    def check_cluster(self, fault: "ActiveRule", config: Config) -> None:
        """The same for what cannot work in this cluster."""

    def applies_to(self, broker: "FaultedBroker") -> bool:
        """Whether the action has an effect on matching requests of a broker now; if not, they are not counted."""
        return True


class RequestAction(Action, frozen=True):
    """Acts on a request on its way."""

    FIELDS: ClassVar[frozenset[str]] = _ALWAYS | _OF_REQUESTS | _TIME | _CHANCE | _HOW_OFTEN

    def can_hit(self, api_key: int, version: int) -> bool:
        """Whether there is something to do for requests of this API and version."""
        return True

    def draw(self, random: "Random") -> float:
        """What is left to chance, drawn as the request is hit: the same seed and traffic give the same."""
        return 0.0

    def before(self, intercepted: "InterceptedRequest", hit: RuleHit) -> Message | Outcome | None:
        """Before it is handled. None: go on. Or its answer, or what parked it (then nothing handles it)."""
        return None

    def after(self, intercepted: "InterceptedRequest", hit: RuleHit, outcome: Message | Outcome) -> Message | Outcome:
        """When its answer is ready, and not yet charged to a quota: what to answer instead, or what parked it."""
        return outcome

    # There is no answer to a request that wants none, and nothing of the following is called for one.

    def answering(
        self, intercepted: "InterceptedRequest", hit: RuleHit, body: list[bytes | memoryview]
    ) -> list[bytes | memoryview]:
        """When its answer is encoded, and nobody has taken note of it yet: what to answer instead."""
        return body

    def leaving(self, intercepted: "InterceptedRequest", hit: RuleHit, frame: "ResponseFrame") -> None:
        """When its answer is about to leave, with its size and header before it."""

    def sent(self, intercepted: "InterceptedRequest", hit: RuleHit) -> None:
        """When its answer has left."""


class ConnectionAction(Action, frozen=True):
    """Acts on a connection. Behind TLS a connection is made when it has shaken hands."""

    FIELDS: ClassVar[frozenset[str]] = _ALWAYS | {"broker", "listener"} | _TIME | _CHANCE | _HOW_OFTEN
    HITS_OPEN: ClassVar[bool] = False  # whether connections are hit, too, that are open as the rule comes into force
    REPORTS_HITS: ClassVar[bool] = (
        False  # whether a hit is counted when it calls `ActiveRule.hit_connection`, not before
    )

    def applies_to_listener(self, server: "SocketServer", listener: str) -> bool:
        """Whether there is something to do to connections of this listener."""
        return True

    def listening(
        self, fault: "ActiveRule", server: "SocketServer", hits: Callable[[str], bool]
    ) -> Callable[[], None] | None:
        """Acts on a broker's listeners, as the rule comes into force or the broker begins to listen; `hits` decides of
        a listener, or of one client of it, by its name. Returns what undoes it, if anything.
        """
        return None

    def connected(
        self, fault: "ActiveRule", server: "SocketServer", connection: "Connection"
    ) -> Callable[[], None] | None:
        """Acts on a connection. Returns what undoes it when the rule ends while the connection is open, if anything."""
        raise NotImplementedError


class StateAction(Action, frozen=True):
    """Is in force while its rule is."""

    FIELDS: ClassVar[frozenset[str]] = _ALWAYS | {"broker"} | _TIME | {"during"}

    def begin(self, fault: "ActiveRule", target: "FaultTarget") -> Callable[[], None]:
        """Brings it about; returns what undoes it. Raises SluiceError where it cannot be, as things are now."""
        raise NotImplementedError
