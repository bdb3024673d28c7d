"""The fault rules of a cluster, which can be added, listed and removed while it runs.

The class of a rule's action determines how it is applied:

- rules for requests are attached to the routes that they may hit (route_faults.py). A FaultExecution
  (fault_execution.py) runs the requests that are hit. Other routes keep their own handler;
- rules for connections are applied when a connection is accepted;
- states begin at once or at the time that the rule sets, and are undone when the rule ends.

Each rule has its own random generator and decides in the order of the requests: the same seed and traffic give the same
faults.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from math import inf
from random import Random  # noqa: TID251  (one generator per rule, made from its seed)

import msgspec

from sluice.broker.broker import Broker
from sluice.broker.exchange.registry import HANDLERS
from sluice.broker.exchange.route import Route
from sluice.broker.exchange.routes import Routes
from sluice.broker.faults.matching.values import RuleProblem
from sluice.broker.faults.requests.fault_execution import RequestAction
from sluice.broker.faults.requests.route_faults import RouteFaults
from sluice.broker.network.socket_server import SocketServer
from sluice.broker.throttling.scope import Scope
from sluice.config.broker_config import Config
from sluice.errors import FaultError, ProxyFaultError, SluiceError
from sluice.journal_events import NO_ID
from sluice.protocol.apis import API_KEYS

from .connection_faults import ConnectionFaults
from .fault import ConnectionAction, Fault, RuleOwner, StateAction, check_node
from .rule import Rule, parse_rule
from .target import FaultTarget, TargetInfo

log = logging.getLogger("sluice.broker")

_SEED_BITS = 64
_LONGEST_ID = 200
_MOST_LISTED = 20  # ids in the error about an unknown one


class FaultEngine(RuleOwner):
    """The rules of one cluster, in the order of addition."""

    def __init__(self, target: FaultTarget, seed: int) -> None:
        """Attach to all brokers; `seed` is the base of rules' seeds."""
        super().__init__(target)
        self.disabled = 0  # number of rules that were disabled
        self._target = target
        self._seed = seed
        self._last_number = 0  # the number in the last generated id
        self._faults: dict[str, Fault] = {}
        self._connection_faults = ConnectionFaults(self, target)
        self._route_faults: dict[int, dict[Route, RouteFaults]] = {}  # by node id
        for node_id, broker in target.brokers.items():
            self.attach_broker(broker, target.servers[node_id])

    @property
    def target_info(self) -> TargetInfo:
        target = self._target
        passes_sasl = any(server.exchange.passes_sasl for server in target.servers.values())
        return TargetInfo(target.config, target.servers, target.is_proxy, target.scope, passes_sasl)

    # -- rules ---------------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Fault]:
        return iter(self.list())

    def __len__(self) -> int:
        return len(self._faults)

    def list(self) -> "list[Fault]":
        return [*self._faults.values()]

    def get(self, fault_id: str) -> Fault:
        found = self._faults.get(fault_id)
        if found is None:
            raise FaultError("id", f"unknown fault rule {fault_id!r}; {self._listing()}")
        return found

    def check(self, given: object, at: str = "fault") -> Rule:
        """Return the rule. Raises FaultError, whose path begins with `at`, if it cannot work in this cluster."""
        rule = parse_rule(given, at)
        self._new_fault(rule, rule.id or "fault", at)
        return rule

    def add(self, given: object, at: str = "fault") -> Fault:
        """Put a Rule, or a mapping of its fields, in force. Raises FaultError as `check` does."""
        rule = parse_rule(given, at)
        number = next(each for each in count(self._last_number + 1) if f"fault-{each}" not in self._faults)
        fault_id = rule.id or f"fault-{number}"
        if fault_id in self._faults:
            raise FaultError(f"{at}.id", f"fault rule {fault_id!r} already exists")
        fault = self._new_fault(rule, fault_id, at)
        self._record_change(fault, "added", msgspec.json.encode(rule).decode())
        if isinstance(fault.action, StateAction):
            self._begin_state(fault, at)
        elif isinstance(fault.action, ConnectionAction):
            self._when_in_force(fault, self._connection_faults.begin)
        else:
            self._put_on_routes(fault)
        if fault.until_ms < inf:
            self.end_in(fault, fault.until_ms - self.now_ms)
        self._last_number = self._last_number if rule.id else number
        self._faults[fault_id] = fault
        log.info("fault rule added", extra={"rule": fault_id, "action": fault.action.kind})
        return fault

    def remove(self, fault_id: str) -> None:
        """End a rule; requests that it delays continue at once. Raises FaultError if it does not exist."""
        fault = self.get(fault_id)
        del self._faults[fault_id]
        fault.is_removed = True
        self.end(fault)
        log.info("fault rule removed", extra={"rule": fault_id, "hits": fault.hits})

    def clear(self) -> None:
        for fault_id in reversed([*self._faults]):
            self.remove(fault_id)

    # -- brokers -------------------------------------------------------------------------------------------------------

    def attach_broker(self, broker: Broker, server: SocketServer) -> None:
        self._route_faults[broker.node_id] = {}
        routes = server.exchange.routes
        routes.on_opened = partial(self._route_opened, broker, routes)
        for route in routes:
            self._route_opened(broker, routes, route)
        server.on_connected = partial(self._connection_faults.connected, server)
        server.on_disconnected = self._connection_faults.lost

    def started(self, server: SocketServer) -> None:
        self._connection_faults.started(server)

    # -- RuleOwner -----------------------------------------------------------------------------------------------------

    def disable(self, fault: Fault, error: Exception) -> None:
        if not fault.enabled:
            return
        fault.enabled = False
        fault.problem = str(error) if isinstance(error, SluiceError) else f"{type(error).__name__}: {error}"
        self.disabled += 1
        log.error("fault rule disabled", exc_info=error, extra={"rule": fault.id, "problem": fault.problem})
        self.end(fault)

    def end_in(self, fault: Fault, delay_ms: float) -> None:
        self._cluster.runtime.scheduler.schedule_once(delay_ms, partial(self.end, fault))

    def end(self, fault: Fault) -> None:
        if not fault.was_ended:
            self._record_change(fault, "ended")
        fault.was_ended = True
        fault.release()
        self.take_off_routes(fault)
        self._connection_faults.end(fault)
        for broker in self._target.brokers.values():
            if broker.fault_waits is not None:
                broker.fault_waits.check_and_complete(fault)
        undos, fault.undo = [*fault.undo.values()], {}
        for undo in reversed(undos):
            try:
                undo()
            except Exception as error:
                self.disable(fault, error)

    def take_off_routes(self, fault: Fault) -> None:
        for by_route in self._route_faults.values():
            for route, faults in [*by_route.items()]:
                faults.discard(fault)
                if not faults.faults:
                    del by_route[route]
                    route.set_faults(None)

    # -- details -------------------------------------------------------------------------------------------------------

    def _listing(self) -> str:
        if not self._faults:
            return "none exists"
        more = len(self._faults) - _MOST_LISTED
        listed = ", ".join(islice(self._faults, _MOST_LISTED)) + (f" and {more} more" if more > 0 else "")
        return f"expected one of {listed}"

    def _record_change(self, fault: Fault, change: str, rule: str = "") -> None:
        if self._cluster.journal is not None:
            self._cluster.journal.add_cluster_event("rule-change", NO_ID, rule_id=fault.id, change=change, rule=rule)

    def _new_fault(self, rule: Rule, fault_id: str, at: str) -> Fault:
        random = Random(f"{self._seed}:{fault_id}" if rule.seed is None else rule.seed)  # noqa: S311  (repeatable)
        try:
            fault = Fault(self, rule, rule.the_action, fault_id, random, self.now_ms, self._target.scope)
            _check(fault, self.target_info)
        except RuleProblem as problem:
            raise _fault_error(problem, at) from None
        return fault

    def _route_opened(self, broker: Broker, routes: Routes, route: Route) -> None:
        for fault in self._faults.values():
            self._put_on(broker, routes, route, fault)

    def _put_on_routes(self, fault: Fault) -> None:
        for server in self._target.servers.values():
            routes = server.exchange.routes
            for route in routes:
                self._put_on(server.broker, routes, route, fault)

    def _put_on(self, broker: Broker, routes: Routes, route: Route, fault: Fault) -> None:
        action = fault.action
        if (
            not fault.is_over
            and isinstance(action, RequestAction)
            and fault.match.hits_route(broker.node_id, route.api_key, route.version)
            and action.can_hit(route.api_key, route.version)
        ):
            by_route = self._route_faults[broker.node_id]
            if route not in by_route:
                by_route[route] = RouteFaults(self, broker, routes, route)
                route.set_faults(by_route[route].handle)
            by_route[route].add(fault)

    def _begin_state(self, fault: Fault, at: str) -> None:
        # Raises FaultError only if it begins now.
        if fault.from_ms > self.now_ms:
            self._when_in_force(fault, self._begin_or_disable)
            return
        try:
            self._begin(fault)
        except SluiceError as error:
            self._record_change(fault, "ended")
            raise FaultError(f"{at}.action", str(error)) from None

    def _begin_or_disable(self, fault: Fault) -> None:
        try:
            self._begin(fault)
        except Exception as error:
            self.disable(fault, error)

    def _begin(self, fault: Fault) -> None:
        assert isinstance(fault.action, StateAction)
        undo = fault.action.begin(fault, self._target)
        fault.matched += 1
        for node_id in fault.nodes(self._target):
            fault.count(node_id)
            self.record_broker_hit(node_id, fault)
        if undo is None:
            self.end(fault)
            return
        fault.undo[fault] = undo
        during_ms = fault.state_duration_ms()
        if during_ms < inf:
            self.end_in(fault, during_ms)

    def _when_in_force(self, fault: Fault, begin: Callable[[Fault], None]) -> None:
        delay_ms = fault.from_ms - self.now_ms
        if delay_ms <= 0:
            begin(fault)
        else:
            self._cluster.runtime.scheduler.schedule_once(delay_ms, lambda: None if fault.is_over else begin(fault))


def seed_of(state: tuple[object, ...]) -> int:
    own = Random()  # noqa: S311  (its state is set next)
    own.setstate(state)
    return own.getrandbits(_SEED_BITS)


def configured_brokers(config: Config) -> TargetInfo:
    """Return the brokers that a config defines."""
    first = config.integer("node.id")
    return TargetInfo(config, range(first, first + config.integer("sluice.brokers")))


def check_rule(rule: Rule, target: TargetInfo, at: str) -> None:
    """Raise FaultError, whose path begins with `at`, if a rule cannot work with these brokers."""
    try:
        _check(Fault(None, rule, rule.the_action, "fault", Random(0), 0.0), target)  # noqa: S311  (nothing is drawn)
    except RuleProblem as problem:
        raise _fault_error(problem, at) from None


class _ProxyRefusal(RuleProblem):
    """A rule that needs a broker of sluice."""


def _fault_error(problem: RuleProblem, at: str) -> FaultError:
    kind = ProxyFaultError if isinstance(problem, _ProxyRefusal) else FaultError
    return kind(f"{at}.{problem.path}", problem.problem)


def _check(fault: Fault, target: TargetInfo) -> None:
    action = fault.action
    if target.is_proxy and action.PROXY_REFUSAL:
        raise _ProxyRefusal("action", f"{action.kind} is not possible in a proxy: {action.PROXY_REFUSAL}")
    _check_scope(fault, target.scope)
    _check_fields(fault)
    for node_id in fault.match.brokers or ():
        check_node(target, node_id, "broker")
    action.check(fault.match)
    action.check_target(fault, target)
    if isinstance(action, RequestAction):
        _check_apis(fault, action)


def _check_scope(fault: Fault, scope: Scope) -> None:
    """Refuse an action that would also affect other clients or topics."""
    action = fault.action
    if isinstance(action, RequestAction):
        return
    if scope.topics:
        raise RuleProblem("action", f"{action.kind} affects all topics, but rules are limited to some (--only-topics)")
    if scope.clients and "client_id" not in action.FIELDS:
        raise RuleProblem(
            "action", f"{action.kind} affects all clients, but rules are limited to some (--only-clients)"
        )


def _check_fields(fault: Fault) -> None:
    rule, action = fault.rule, fault.action
    if rule.id is not None and not _is_name(rule.id):
        raise RuleProblem(
            "id", f"expected 1 to {_LONGEST_ID} printable characters without '/' and spaces, got {rule.id!r}"
        )
    for name in Rule.__struct_fields__:
        if getattr(rule, name) is not None and name not in action.FIELDS:
            accepted = ", ".join(each for each in Rule.__struct_fields__ if each in action.FIELDS)
            raise RuleProblem(name, f"does not apply to {action.kind}; expected only {accepted}")


def _is_name(text: str) -> bool:
    """Whether an id is safe in URL paths, metric labels, tables and logs."""
    return 0 < len(text) <= _LONGEST_ID and text.isprintable() and not {"/", " "} & {*text}


def _check_apis(fault: Fault, action: RequestAction) -> None:
    match = fault.match
    first, last = match.versions
    for key in match.named_apis:
        handler = HANDLERS[key]
        versions = range(max(first, handler.min_version), min(last, handler.max_version) + 1)
        if not any(action.can_hit(key, version) for version in versions):
            able = [API_KEYS[each].name for each, one in HANDLERS.items() if action.can_hit(each, one.max_version)]
            name = API_KEYS[key].name
            raise RuleProblem(
                "api", f"{action.kind} has no effect on {name} in these versions; expected one of {', '.join(able)}"
            )
