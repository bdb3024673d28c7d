"""A rule in force and the request that it hits, as actions see them."""

from typing import Literal, Protocol

from sluice.broker.broker import Broker
from sluice.broker.exchange.routes import Routes
from sluice.broker.faults.matching.conditions import RuleConditions
from sluice.broker.faults.matching.match import Match
from sluice.broker.network.connection import Connection
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.protocol.error_response import ErrorLevel
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .broker_states import DesiredBrokerStates
from .leader_moves import LeaderMoves
from .target import FaultTarget


class ActiveRule(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def rule(self) -> RuleConditions: ...
    @property
    def match(self) -> Match: ...
    @property
    def has_ended(self) -> bool: ...
    @property
    def free_at_ms(self) -> dict[int, float]: ...
    @property
    def broker_states(self) -> DesiredBrokerStates: ...
    @property
    def leader_moves(self) -> LeaderMoves: ...

    def __hash__(self) -> int: ...

    def nodes(self, target: FaultTarget) -> list[int]:
        """Return the node ids of the brokers that the rule matches."""

    def hit_connection(self, node_id: int, connection: Connection) -> None:
        """Count a hit and record it in the journal."""

    def end(self) -> None:
        """End the rule, which stays in the list."""

    def disable(self, error: Exception) -> None:
        """End the rule because of an error."""


class InterceptedRequest(Protocol):
    @property
    def ctx(self) -> RequestContext: ...
    @property
    def request(self) -> Message: ...
    @property
    def broker(self) -> Broker: ...
    @property
    def routes(self) -> Routes: ...

    def wait_before(self, rule: ActiveRule, delay_ms: float) -> Outcome:
        """Park the request before its handling."""

    def wait_after(self, rule: ActiveRule, delay_ms: float, outcome: Message | Outcome) -> Outcome:
        """Park the request between its handling and its response."""

    def close(self, rule: ActiveRule, how: Literal["fin", "rst"]) -> Outcome:
        """Close the connection without a response."""

    def repeat(self) -> None:
        """Handle the request twice; the first response is discarded."""

    def mute(self, rule: ActiveRule, delay_ms: float) -> None:
        """Mute the connection for a time after the response, unless a quota mutes it as well."""

    def set_throttle_time(self, body: list[bytes | memoryview], throttle_ms: int) -> list[bytes | memoryview]:
        """Return the response with this throttle time; record it in the journal."""

    def split_off(self, level: ErrorLevel, rest: Message, failed: Message, code: ErrorCode) -> None:
        """Handle only `rest` of the request; `failed` is the response to the other part."""

    def request_without(self, level: ErrorLevel) -> Message:
        """Return the request without the level's items."""

    def overwrite(self, rule: ActiveRule) -> None:
        """Let a rule change the handler's response."""

    def is_overwritten_by(self, rule: ActiveRule) -> bool:
        """Return whether a rule changes the handler's response."""

    def fail_partitions(self, rule: ActiveRule, code: ErrorCode) -> None:
        """Return this error for fetched partitions that the rule matches."""

    def report_failure(self, outcome: Message | Outcome) -> Message | Outcome:
        """Return a failed outcome. Closes the connection of a Produce with acks=0, which has no response."""
