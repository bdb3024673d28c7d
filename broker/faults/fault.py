"""A rule in force with its counters."""

from collections.abc import Callable
from math import inf
from random import Random  # noqa: TID251  (the type of an argument)
from typing import Literal, Protocol

from sluice.broker.broker import Broker
from sluice.broker.faults.actions.action import Action
from sluice.broker.faults.matching.durations import parse_ms
from sluice.broker.faults.matching.errors import RuleProblem
from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.matching.schedule import During, new_schedule
from sluice.broker.network.connection import Connection
from sluice.broker.requests.context import RequestContext
from sluice.protocol.entities import RequestEntities
from sluice.purgatory.purgatory import DelayedOperationPurgatory

from .broker_states import DesiredBrokerStates
from .leader_moves import LeaderMoves
from .rule import Rule
from .target import FaultTarget

# pending: `after` has not elapsed. over: it hits nothing any more, and the states that it set are undone.
FaultState = Literal["pending", "in force", "over", "disabled", "removed"]


class RuleOwner(Protocol):
    """The fault engine, as rules, requests and connections see it."""

    @property
    def broker_states(self) -> DesiredBrokerStates: ...
    @property
    def leader_moves(self) -> LeaderMoves: ...
    @property
    def now_ms(self) -> float: ...

    def waiting_on(self, broker: Broker) -> DelayedOperationPurgatory:
        """Return the purgatory of requests that rules delay."""

    def record_hit(self, ctx: RequestContext, fault: "Fault") -> None:
        """Record a hit of the request in flight or, without one, of the connection in the journal."""

    def record_broker_hit(self, node_id: int, fault: "Fault") -> None:
        """Record a hit of a broker in the journal."""

    def record_throttle_time(self, ctx: RequestContext, throttle_ms: int) -> None:
        """Record the throttle time of the response in progress in the journal."""

    def remove(self, fault_id: str) -> None: ...

    def disable(self, fault: "Fault", error: Exception) -> None:
        """End a rule because of an error."""

    def end(self, fault: "Fault") -> None:
        """Undo a rule; if it was removed or disabled, release the requests that it delays."""

    def end_in(self, fault: "Fault", delay_ms: float) -> None: ...

    def take_off_routes(self, fault: "Fault") -> None: ...


class Fault:
    def __init__(self, owner: RuleOwner | None, rule: Rule, rule_id: str, random: Random, now_ms: float) -> None:
        """Check and initialize the rule; without `owner`, only check it. Raises RuleProblem if it cannot work."""
        self.id = rule_id
        self.rule = rule
        self.action: Action = rule.the_action
        self.match = Match(rule)
        self.matched = 0  # matches, hit or not
        self.hits = 0
        self.hits_on: dict[int, int] = {}  # hits by node id
        self.enabled = True
        self.problem = ""
        self.is_removed = False
        self.was_ended = False  # by its time, by its removal, or as other means undid its state
        self.random = random
        self._owner = owner
        self._schedule = new_schedule(rule.times, rule.during, rule.on, rule.schedule)
        self.from_ms = now_ms + (0 if rule.after is None else parse_ms(rule.after, "after"))
        self.until_ms = inf if rule.until is None else now_ms + parse_ms(rule.until, "until")
        if self.until_ms <= self.from_ms:
            raise RuleProblem("until", f"expected later than `after` ({rule.after or 0}), got {rule.until}")
        if rule.probability is not None and not 0 < rule.probability <= 1:
            raise RuleProblem("probability", f"expected above 0 and at most 1, got {rule.probability}")
        if rule.seed is not None and rule.probability is None and type(rule.the_action).DRAWS is False:
            raise RuleProblem("seed", "has no effect without a probability or an action with random values")
        if rule.request is not None and rule.request < 1:
            raise RuleProblem("request", f"expected 1 or more, got {rule.request}")
        self._nth, self._probability = rule.request, rule.probability
        self._needs_time = (
            self.from_ms > now_ms or self.until_ms < inf or self.match.needs_age or isinstance(self._schedule, During)
        )
        self.free_at_ms: dict[int, float] = {}  # by broker: when its disk is idle, for `slow-disk`
        self.undo: dict[object, Callable[[], None]] = {}  # how to undo the rule, by the object that it was applied to

    @property
    def has_ended(self) -> bool:
        """Whether it was removed or disabled, so that delayed requests continue."""
        return self.is_removed or not self.enabled

    @property
    def is_over(self) -> bool:
        return self.was_ended or self._schedule.is_over

    @property
    def state(self) -> FaultState:
        if self.is_removed:
            return "removed"
        if not self.enabled:
            return "disabled"
        if self.is_over:
            return "over"
        return "pending" if self._owner is not None and self._owner.now_ms < self.from_ms else "in force"

    def remove(self) -> None:
        if self._owner is not None and not self.is_removed:
            self._owner.remove(self.id)

    def hits_request(self, ctx: RequestContext, broker: Broker, named: RequestEntities | None) -> bool:
        """Return whether it hits a request whose route and client match; count the hit.

        `named`: the request's entities, if the rule has conditions on them.
        """
        match = self.match
        if named is not None and not match.hits_names(named):
            return False
        now_ms = 0.0
        if self._needs_time:
            now_ms = broker.clock.monotonic_ms()
            if not self.from_ms <= now_ms < self.until_ms:
                return False
            if match.needs_age and not match.hits_age(now_ms - ctx.session.connection.opened_ms):
                return False
        if self._nth is not None and self._count(ctx) != self._nth:
            return False
        if not self.action.applies_to(broker) or not self.should_fire(now_ms):
            return False
        self.count(broker.node_id)
        return True

    def matches_connection(self, connection: Connection, now_ms: float) -> bool:
        ctx, match = connection.ctx, self.match
        client = (
            ctx.session.client_id,
            *ctx.session.client_software,
            ctx.session.principal,
            connection.advertised.name,
        )
        return match.hits_client(client) and match.hits_age(now_ms - connection.opened_ms)

    def hit_connection(self, node_id: int, connection: Connection) -> None:
        assert self._owner is not None, "only rules in force hit"
        self.count(node_id)
        self._owner.record_hit(connection.ctx, self)

    def nodes(self, target: FaultTarget) -> list[int]:
        return sorted(target.servers if self.match.brokers is None else self.match.brokers)

    @property
    def broker_states(self) -> DesiredBrokerStates:
        assert self._owner is not None, "only rules in force change brokers"
        return self._owner.broker_states

    @property
    def leader_moves(self) -> LeaderMoves:
        assert self._owner is not None, "only rules in force move leaders"
        return self._owner.leader_moves

    def end(self) -> None:
        assert self._owner is not None, "only rules in force end"
        self._owner.end(self)

    def disable(self, error: Exception) -> None:
        assert self._owner is not None, "only rules in force are disabled"
        self._owner.disable(self, error)

    def count(self, node_id: int) -> None:
        self.hits += 1
        self.hits_on[node_id] = self.hits_on.get(node_id, 0) + 1

    def should_fire(self, now_ms: float) -> bool:
        if self._probability is not None and self.random.random() >= self._probability:
            return False
        self.matched += 1
        if self.matched == 1 and self.rule.during is not None:
            assert self._owner is not None, "only rules in force fire"
            self._owner.end_in(self, parse_ms(self.rule.during, "during"))
        return self._schedule.hits(now_ms)

    def _count(self, ctx: RequestContext) -> int:
        counts = ctx.session.fault_counts
        if counts is None:
            counts = ctx.session.fault_counts = {}
        number = counts[self] = counts.get(self, 0) + 1
        return number


def state_duration_ms(fault: Fault) -> float:
    rule = fault.rule
    during_ms = inf if rule.during is None else parse_ms(rule.during, "during")
    return min(during_ms, fault.until_ms - fault.from_ms)
