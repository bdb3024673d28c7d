"""A rule in force with its counters, and the base classes of actions.

request     acts on a request: before it is handled, when its response is ready, when that is sent (requests/)
connection  acts on new connections and, if the class specifies so, on open ones
state       begins with its rule, and is undone when the rule ends

An action is its own configuration: a struct, tagged by `kind`. One object serves all hits of its rule. Add new ones to
actions/, and to the union in actions/__init__.py.
"""

from collections import deque
from collections.abc import Callable
from math import inf
from random import Random  # noqa: TID251  (the type of an argument)
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from sluice.broker.broker import Broker
from sluice.broker.faults.matching.conditions import Conditions
from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.matching.schedule import During, new_schedule
from sluice.broker.faults.matching.values import RuleProblem, parse_ms
from sluice.broker.requests.context import RequestContext
from sluice.broker.throttling.scope import EVERYTHING, Scope
from sluice.protocol.entities import RequestEntities
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory

from .broker_states import DesiredBrokerStates
from .leader_moves import LeaderMoves
from .target import FaultTarget, TargetInfo
from .undo import Undo

if TYPE_CHECKING:
    from sluice.broker.network.connection import Connection
    from sluice.broker.network.socket_server import SocketServer

# pending: `after` has not elapsed. over: it hits nothing any more, and the states that it set are undone.
FaultState = Literal["pending", "in force", "over", "disabled", "removed"]

# The fields of rules that apply to all actions, or to some.
SCHEDULE = frozenset({"times", "during", "on", "schedule"})
TIME = frozenset({"after", "until"})
CHANCE = frozenset({"probability", "seed"})
ALWAYS = frozenset({"id", "action"})


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"):
    """The effect of a rule; the docstring of a subclass describes it in the documentation."""

    # The fields of a rule that apply to the action.
    FIELDS: ClassVar[frozenset[str]]
    DRAWS: ClassVar[bool] = False  # whether the action draws random numbers
    PROXY_REFUSAL: ClassVar[str] = ""  # why it cannot work in a proxy, in front of a cluster; empty if it works

    @property
    def kind(self) -> str:
        return str(type(self).__struct_config__.tag)

    def check(self, match: Match) -> None:
        """Raise RuleProblem, with a path in the rule, if the action has no effect on the rule's matches."""

    def check_target(self, fault: "Fault", target: TargetInfo) -> None:
        """Raise RuleProblem if the action cannot work with these brokers."""

    def applies_to(self, broker: Broker) -> bool:
        """Return whether the action affects matching requests now; others are not counted."""
        return True


class ConnectionAction(Action, frozen=True):
    """Acts on connections; with TLS, after the handshake."""

    FIELDS: ClassVar[frozenset[str]] = ALWAYS | {"broker", "listener"} | TIME | CHANCE | SCHEDULE
    HITS_OPEN: ClassVar[bool] = False  # whether it also acts on connections open at the start of the rule
    # Whether the action itself counts hits, by `Fault.hit_connection`.
    REPORTS_HITS: ClassVar[bool] = False
    LAYER: ClassVar[str] = ""  # of its listeners: SSL or SASL

    def check_target(self, fault: "Fault", target: TargetInfo) -> None:
        config = target.config
        names = [endpoint.name for endpoint in config.listeners(0)]
        matched = {name: config.security_protocol(name) for name in names if fault.match.hits_listener(name)}
        if not matched:
            problem = f"unknown listener; expected one of {', '.join(names)}, got {fault.rule.listener}"
            raise RuleProblem("listener", problem)
        is_passed = self.LAYER == "SASL" and target.passes_sasl
        if not is_passed and not any(self.LAYER in protocol for protocol in matched.values()):
            protocols = ", ".join(f"{name} uses {protocol}" for name, protocol in matched.items())
            raise RuleProblem(
                "action", f"expected a listener that uses {self.LAYER.replace('SSL', 'TLS')}; {protocols}"
            )

    def applies_to_listener(self, server: "SocketServer", listener: str) -> bool:
        return True

    def on_listen(self, fault: "Fault", server: "SocketServer", hits: Callable[[str], bool]) -> Undo | None:
        """Act on listeners at the start of the rule or of the broker; return how to undo that.

        `hits` decides on a listener, or one of its clients, by the listener's name.
        """
        return None

    def on_connected(self, fault: "Fault", server: "SocketServer", connection: "Connection") -> Undo | None:
        """Act on a connection; return how to undo that."""
        raise NotImplementedError


class StateAction(Action, frozen=True):
    """Changes the state of the cluster while its rule is in force."""

    FIELDS: ClassVar[frozenset[str]] = ALWAYS | {"broker"} | TIME | {"during"}

    def begin(self, fault: "Fault", target: FaultTarget) -> Undo | None:
        """Return how to undo it, or None if it is permanent, which ends the rule. Raises SluiceError."""
        raise NotImplementedError


class RuleOwner:
    """The fault engine, as rules, requests and connections see it."""

    def __init__(self, target: FaultTarget) -> None:
        self._cluster = target.cluster
        self.broker_states = DesiredBrokerStates(target)
        self.leader_moves = LeaderMoves(target)

    @property
    def now_ms(self) -> float:
        return self._cluster.runtime.clock.monotonic_ms()

    def waiting_on(self, broker: Broker) -> DelayedOperationPurgatory:
        """Return the purgatory of requests that rules delay."""
        if broker.fault_waits is None:
            # Completed waits reference their connections; they are few, so purges are cheap.
            broker.fault_waits = DelayedOperationPurgatory("Fault", broker.timer, purge_interval=0)
        return broker.fault_waits

    def record_hit(self, ctx: RequestContext, fault: "Fault") -> None:
        """Record a hit of the request in flight or, without one, of the connection in the journal."""
        if self._cluster.journal is not None:
            self._cluster.journal.fault(ctx, fault.id, fault.action.kind)

    def record_broker_hit(self, node_id: int, fault: "Fault") -> None:
        if self._cluster.journal is not None:
            self._cluster.journal.add_broker_fault(node_id, fault.id, fault.action.kind)

    def record_throttle_time(self, ctx: RequestContext, throttle_ms: int) -> None:
        if self._cluster.journal is not None:
            self._cluster.journal.set_throttle_time(ctx, throttle_ms)

    def remove(self, fault_id: str) -> None:
        raise NotImplementedError

    def disable(self, fault: "Fault", error: Exception) -> None:
        """End a rule because of an error."""
        raise NotImplementedError

    def end(self, fault: "Fault") -> None:
        """Undo a rule; if it was removed or disabled, release the requests that it delays."""
        raise NotImplementedError

    def end_in(self, fault: "Fault", delay_ms: float) -> None:
        raise NotImplementedError

    def take_off_routes(self, fault: "Fault") -> None:
        raise NotImplementedError


class Fault:
    def __init__(
        self,
        owner: RuleOwner | None,
        rule: Conditions,
        action: Action,
        rule_id: str,
        random: Random,
        now_ms: float,
        scope: Scope = EVERYTHING,
    ) -> None:
        """Check and initialize the rule; without `owner`, only check it. Raises RuleProblem if it cannot work."""
        self.id = rule_id
        self.rule = rule
        self.action = action
        self.match = Match(rule, scope)
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
        if rule.seed is not None and rule.probability is None and not action.DRAWS:
            raise RuleProblem("seed", "has no effect without a probability or an action with random values")
        if rule.request is not None and rule.request < 1:
            raise RuleProblem("request", f"expected 1 or more, got {rule.request}")
        self._nth, self._probability = rule.request, rule.probability
        self._needs_time = (
            self.from_ms > now_ms or self.until_ms < inf or self.match.needs_age or isinstance(self._schedule, During)
        )
        self.free_at_ms: dict[int, float] = {}  # by broker: when its disk is idle, for `slow-disk`
        self.undo: dict[object, Callable[[], None]] = {}  # how to undo the rule, by the object that it was applied to
        self._held: deque[DelayedOperation] = deque()  # in the order of arrival; some may have ended otherwise

    @property
    def owner(self) -> RuleOwner:
        assert self._owner is not None, "only rules in force have effects"
        return self._owner

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
        return "pending" if self.owner.now_ms < self.from_ms else "in force"

    @property
    def held(self) -> int:
        """The number of requests that a `hold` holds now."""
        return sum(not each.completed for each in self._held)

    def hold(self, request: DelayedOperation) -> None:
        """Add a request to those that `release` completes."""
        held = self._held
        while held and held[0].completed:
            held.popleft()
        held.append(request)

    def release(self, count: int | None = None) -> int:
        """Let the oldest held requests continue, by default all; return their number."""
        waiting = [each for each in self._held if not each.completed]
        released = waiting if count is None else waiting[:count]
        self._held = deque(waiting[len(released) :])
        for each in released:
            each.force_complete()
        return len(released)

    def remove(self) -> None:
        if not self.is_removed:
            self.owner.remove(self.id)

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

    def matches_connection(self, connection: "Connection", now_ms: float) -> bool:
        session, match = connection.ctx.session, self.match
        client = (session.client_id, *session.client_software, session.principal, connection.advertised.name)
        return match.hits_client(client) and match.hits_age(now_ms - connection.opened_ms)

    def hit_connection(self, node_id: int, connection: "Connection") -> None:
        self.count(node_id)
        self.owner.record_hit(connection.ctx, self)

    def nodes(self, target: FaultTarget) -> list[int]:
        return sorted(target.servers if self.match.brokers is None else self.match.brokers)

    def end(self) -> None:
        """End the rule, which stays in the list."""
        self.owner.end(self)

    def disable(self, error: Exception) -> None:
        self.owner.disable(self, error)

    def count(self, node_id: int) -> None:
        self.hits += 1
        self.hits_on[node_id] = self.hits_on.get(node_id, 0) + 1

    def should_fire(self, now_ms: float) -> bool:
        if self._probability is not None and self.random.random() >= self._probability:
            return False
        self.matched += 1
        if self.matched == 1 and self.rule.during is not None:
            self.owner.end_in(self, parse_ms(self.rule.during, "during"))
        return self._schedule.hits(now_ms)

    def state_duration_ms(self) -> float:
        during_ms = inf if self.rule.during is None else parse_ms(self.rule.during, "during")
        return min(during_ms, self.until_ms - self.from_ms)

    def _count(self, ctx: RequestContext) -> int:
        counts = ctx.session.fault_counts
        if counts is None:
            counts = ctx.session.fault_counts = {}
        number = counts[self] = counts.get(self, 0) + 1
        return number


def check_node(target: TargetInfo, node_id: int, path: str) -> None:
    if node_id not in target.node_ids:
        known = ", ".join(map(str, target.node_ids))
        raise RuleProblem(path, f"unknown broker; expected one of {known}, got {node_id}")


def check_several(target: TargetInfo, node_id: int | None = None, path: str = "") -> None:
    """Raise RuleProblem unless the cluster has several brokers, one of them with `node_id`, unless that is None."""
    if len(target.node_ids) == 1:
        raise RuleProblem("action", "expected a cluster of several brokers; this one has 1")
    if node_id is not None:
        check_node(target, node_id, path)
