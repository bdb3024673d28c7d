"""The fault rules of a cluster: added, listed and removed while it runs; asked by brokers only where they may hit.

Theory of operation. A rule is checked when it is added, against everything that is known of it then: a rule that was
taken can work. It then belongs to a class, by its action (actions/action.py):

- rules for requests are put on the routes that they may hit (route_faults.py), and a request that one hits takes its
  execution (fault_execution.py). Routes without rules are as if there were none;
- rules for connections are asked as one is made;
- states are brought about now, or when their time has come, and undone when it is over or the rule is removed.

Chance is each rule's own, from its seed, and each decision is taken in the order of the requests: the same seed and the
same traffic give the same faults. Whatever goes wrong with a rule ends that rule and nothing else.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from math import inf
from random import Random  # noqa: TID251  (the type of what is injected; a rule's own is made from its seed)

from sluice.broker.dispatch.dispatcher import Route
from sluice.broker.dispatch.registry import HANDLERS
from sluice.broker.faults.actions.action import ConnectionAction, RequestAction, StateAction, node_ids_of
from sluice.broker.faults.matching.errors import FaultError, RuleProblem
from sluice.broker.faults.requests.route_faults import RouteFaults
from sluice.broker.network.socket_server import SocketServer
from sluice.broker.requests.context import RequestContext
from sluice.config.broker_config import Config
from sluice.errors import SluiceError
from sluice.protocol.apis import API_KEYS
from sluice.purgatory.purgatory import DelayedOperationPurgatory

from .broker_states import DesiredBrokerStates
from .connection_faults import ConnectionFaults
from .fault import Fault, lasts_ms
from .rule import Rule, parse_rule
from .target import FaultedBroker, FaultTarget

log = logging.getLogger("sluice.broker")

_SEED_BITS = 64
_LONGEST_ID = 200
_MOST_TOLD = 20  # of the ids there are, where one is asked for that is not


class FaultEngine:
    """The rules of one cluster, in the order they were added."""

    def __init__(self, target: FaultTarget, seed: int) -> None:
        """`seed` is what rules that have none derive theirs from."""
        self.disabled = 0  # rules that went wrong, ever
        self._target = target
        self._cluster = target.cluster
        self._seed = seed
        self._given = 0  # the number in the last id that was made up
        self._faults: dict[str, Fault] = {}
        self._of_connections = ConnectionFaults(self, target)
        self.broker_states = DesiredBrokerStates(target)
        self._of_routes: dict[int, dict[Route, RouteFaults]] = {}  # by node id
        for node_id, broker in target.brokers.items():
            self.attach_broker(broker, target.servers[node_id])

    # -- what those who make faults call -------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Fault]:
        return iter(self.list())

    def __len__(self) -> int:
        return len(self._faults)

    def list(self) -> "list[Fault]":
        """The rules, those that are over or disabled included."""
        return [*self._faults.values()]

    def get(self, fault_id: str) -> Fault:
        """A rule by its id. Raises FaultError."""
        found = self._faults.get(fault_id)
        if found is None:
            raise FaultError("id", f"there is no fault rule {fault_id!r}; {self._those_there_are()}")
        return found

    def check(self, given: object, at: str = "fault") -> Rule:
        """The rule, if it can work here; else raises FaultError, which names the place from `at` on."""
        rule = parse_rule(given, at)
        self._made(rule, rule.id or "fault", at)
        return rule

    def add(self, given: object, at: str = "fault") -> Fault:
        """Puts a rule in force: a Rule, or a mapping of its fields. Raises FaultError as `check` does."""
        rule = parse_rule(given, at)
        number = self._next_number()
        fault_id = rule.id or f"fault-{number}"
        if fault_id in self._faults:
            raise FaultError(f"{at}.id", f"there is a fault rule {fault_id!r} already")
        fault = self._made(rule, fault_id, at)
        if isinstance(fault.action, StateAction):
            self._bring_about(fault, at)
        elif isinstance(fault.action, ConnectionAction):
            self._later(fault, self._of_connections.begin)
        else:
            self._put_on_routes(fault)
        if fault.until_ms < inf and not isinstance(fault.action, RequestAction):
            self._cluster.scheduler.schedule_once(fault.until_ms - self._now_ms(), partial(self.end, fault))
        self._given = self._given if rule.id else number
        self._faults[fault_id] = fault
        log.info("fault rule added", extra={"rule": fault_id, "action": fault.action.kind})
        return fault

    def remove(self, fault_id: str) -> None:
        """Ends a rule. Requests that wait because of it go on at once. Raises FaultError where there is none."""
        fault = self.get(fault_id)
        del self._faults[fault_id]
        fault.is_removed = True
        self.end(fault)
        log.info("fault rule removed", extra={"rule": fault_id, "hits": fault.hits})

    def clear(self) -> None:
        """Removes all rules, the newest first."""
        for fault_id in reversed([*self._faults]):
            self.remove(fault_id)

    # -- what brokers call ---------------------------------------------------------------------------------------------

    def attach_broker(self, broker: FaultedBroker, server: SocketServer) -> None:
        """Apply the rules to the requests and connections of a broker, also of one that was started again."""
        self._of_routes[broker.node_id] = {}
        broker.dispatcher.on_route_opened = partial(self._route_opened, broker)
        for route in broker.dispatcher.routes:
            self._route_opened(broker, route)
        server.on_connected = partial(self._of_connections.connected, server)
        server.on_disconnected = self._of_connections.lost

    def started(self, server: SocketServer) -> None:
        """A broker listens again that was stopped."""
        self._of_connections.started(server)

    # -- what rules call -----------------------------------------------------------------------------------------------

    def waiting_on(self, broker: FaultedBroker) -> DelayedOperationPurgatory:
        """Where a broker's requests wait because of rules."""
        if broker.fault_waits is None:
            broker.fault_waits = DelayedOperationPurgatory("Fault", broker.timer)
        return broker.fault_waits

    def record_hit(self, ctx: RequestContext, fault: Fault) -> None:
        """Record in the journal that a rule hits the request in flight or, without one, the connection."""
        if self._cluster.journal is not None:
            self._cluster.journal.fault(ctx, fault.id, fault.action.kind)

    def record_broker_hit(self, node_id: int, fault: Fault) -> None:
        """Record in the journal that a rule hits a broker."""
        if self._cluster.journal is not None:
            self._cluster.journal.fault_of_broker(node_id, fault.id, fault.action.kind)

    def record_throttle_time(self, ctx: RequestContext, throttle_ms: int) -> None:
        """Record in the journal the throttle time of the response to the request in flight."""
        if self._cluster.journal is not None:
            self._cluster.journal.throttle_told(ctx, throttle_ms)

    def disable(self, fault: Fault, error: Exception) -> None:
        """A rule went wrong: it ends, stays in the list, and what it hit goes on without it."""
        if not fault.enabled:
            return
        fault.enabled = False
        fault.problem = str(error) if isinstance(error, SluiceError) else f"{type(error).__name__}: {error}"
        self.disabled += 1
        log.error("fault rule disabled", exc_info=error, extra={"rule": fault.id, "problem": fault.problem})
        self.end(fault)

    def end(self, fault: Fault) -> None:
        """Lets go of all that a rule holds."""
        self.take_off_routes(fault)
        self._of_connections.end(fault)
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
        """A rule hits no requests any more."""
        for of_routes in self._of_routes.values():
            for route, faults in [*of_routes.items()]:
                faults.discard(fault)
                if not faults.faults:
                    del of_routes[route]
                    route.handle = route.serve

    # -- details -------------------------------------------------------------------------------------------------------

    def _those_there_are(self) -> str:
        if not self._faults:
            return "there is none"
        more = len(self._faults) - _MOST_TOLD
        told = ", ".join(islice(self._faults, _MOST_TOLD)) + (f" and {more} more" if more > 0 else "")
        return f"those there are: {told}"

    def _next_number(self) -> int:
        return next(number for number in count(self._given + 1) if f"fault-{number}" not in self._faults)

    def _made(self, rule: Rule, fault_id: str, at: str) -> Fault:
        random = Random(f"{self._seed}:{fault_id}" if rule.seed is None else rule.seed)  # noqa: S311  (repeatable)
        try:
            fault = Fault(self, rule, fault_id, random, self._now_ms())
            _check(fault, self._target.config)
        except RuleProblem as problem:
            raise FaultError(f"{at}.{problem.path}", problem.problem) from None
        return fault

    def _route_opened(self, broker: FaultedBroker, route: Route) -> None:
        for fault in self._faults.values():
            self._put_on(broker, route, fault)

    def _put_on_routes(self, fault: Fault) -> None:
        for broker in self._target.brokers.values():
            for route in broker.dispatcher.routes:
                self._put_on(broker, route, fault)

    def _put_on(self, broker: FaultedBroker, route: Route, fault: Fault) -> None:
        action = fault.action
        if (
            not fault.is_over
            and isinstance(action, RequestAction)
            and fault.match.hits_route(broker.node_id, route.api_key, route.version)
            and action.can_hit(route.api_key, route.version)
        ):
            of_routes = self._of_routes[broker.node_id]
            if route not in of_routes:
                of_routes[route] = RouteFaults(self, broker, route)
                route.handle = of_routes[route].handle
            of_routes[route].add(fault)

    def _bring_about(self, fault: Fault, at: str) -> None:
        """Brings a state about: now, when what is wrong with it is the caller's to hear, or later."""
        if fault.from_ms > self._now_ms():
            self._later(fault, self._begin_or_disable)
            return
        try:
            self._begin(fault)
        except SluiceError as error:
            raise FaultError(f"{at}.action", str(error)) from None

    def _begin_or_disable(self, fault: Fault) -> None:
        try:
            self._begin(fault)
        except Exception as error:
            self.disable(fault, error)

    def _begin(self, fault: Fault) -> None:
        assert isinstance(fault.action, StateAction)
        fault.undo[fault] = fault.action.begin(fault, self._target)
        fault.matched += 1
        for node_id in fault.nodes(self._target):
            fault.count(node_id)
            self.record_broker_hit(node_id, fault)
        during_ms = lasts_ms(fault)
        if during_ms < inf:
            self._cluster.scheduler.schedule_once(during_ms, partial(self.end, fault))

    def _later(self, fault: Fault, happen: Callable[[Fault], None]) -> None:
        """At the moment from which the rule is in force."""
        delay_ms = fault.from_ms - self._now_ms()
        if delay_ms <= 0:
            happen(fault)
        else:
            self._cluster.scheduler.schedule_once(delay_ms, lambda: None if fault.is_over else happen(fault))

    def _now_ms(self) -> float:
        return self._cluster.clock.monotonic_ms()


def seed_of(state: tuple[object, ...]) -> int:
    """A seed that follows from the state of a generator."""
    own = Random()  # noqa: S311  (its state is set next)
    own.setstate(state)
    return own.getrandbits(_SEED_BITS)


def check_rule(rule: Rule, config: Config, at: str) -> None:
    """Raises FaultError, which names the place from `at` on, for a rule that cannot work in such a cluster."""
    try:
        _check(Fault(None, rule, "fault", Random(0), 0.0), config)  # noqa: S311  (nothing is drawn)
    except RuleProblem as problem:
        raise FaultError(f"{at}.{problem.path}", problem.problem) from None


def _check(fault: Fault, config: Config) -> None:
    _check_fields(fault.rule)
    node_ids = node_ids_of(config)
    for node_id in fault.match.brokers or ():
        if node_id not in node_ids:
            there = ", ".join(map(str, node_ids))
            raise RuleProblem("broker", f"there is no broker {node_id}; those there are: {there}")
    fault.action.check(fault.match)
    fault.action.check_cluster(fault, config)
    if isinstance(fault.action, RequestAction):
        _check_apis(fault, fault.action)


def _check_fields(rule: Rule) -> None:
    """Raises RuleProblem for a name that is hard to tell, and for a field that means nothing for the rule's action."""
    if rule.id is not None and not _is_name(rule.id):
        raise RuleProblem(
            "id", f"must be text of 1 to {_LONGEST_ID} characters that can be printed, without / and blanks"
        )
    action = rule.the_action
    for name in Rule.__struct_fields__:
        if getattr(rule, name) is not None and name not in action.FIELDS:
            takes = ", ".join(each for each in Rule.__struct_fields__ if each in action.FIELDS)
            raise RuleProblem(name, f"means nothing for {action.kind}, which is not hit by requests; it takes {takes}")


def _is_name(text: str) -> bool:
    """Whether it can stand in a path, in a metric, and in a line of a table or a log."""
    return 0 < len(text) <= _LONGEST_ID and text.isprintable() and not {"/", " "} & {*text}


def _check_apis(fault: Fault, action: RequestAction) -> None:
    """Raises RuleProblem for an action that can do nothing to any API that is named."""
    match = fault.match
    first, last = match.versions
    for key in match.named_apis:
        handler = HANDLERS[key]
        versions = range(max(first, handler.min_version), min(last, handler.max_version) + 1)
        if not any(action.can_hit(key, version) for version in versions):
            able = [API_KEYS[each].name for each, one in HANDLERS.items() if action.can_hit(each, one.max_version)]
            name = API_KEYS[key].name
            raise RuleProblem(
                "api", f"{action.kind} can do nothing to {name} in these versions; it can to {', '.join(able)}"
            )
