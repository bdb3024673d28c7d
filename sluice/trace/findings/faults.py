"""Fault rules and steps of scenarios: what they hit, what failed, and why a rule hit nothing.

The reason is the condition that failed on the nearest request, or the schedule. Each condition is evaluated alone, by
the code of the broker's rules.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import inf
from typing import NamedTuple

import msgspec

from sluice.broker.exchange.registry import HANDLERS
from sluice.broker.faults.fault import ConnectionAction, StateAction
from sluice.broker.faults.matching.conditions import Conditions
from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.matching.values import RuleProblem, parse_ms
from sluice.broker.faults.requests.fault_execution import RequestAction
from sluice.broker.faults.rule import Rule, parse_rule
from sluice.errors import FaultError
from sluice.journal_events import ConnectionOpened, Request, RuleChange, ScenarioStep
from sluice.protocol.entities import RequestEntities
from sluice.trace.described import counted, rule_text

from .history import NS_PER_MS, Found, History, client_of, duration, grouped, listed, seqs, topics_of


class Condition(NamedTuple):
    """A condition on requests.

    name: name of the field
    expected: what the condition accepts
    actual: the value of a request
    holds: whether a request meets it
    """

    name: str
    expected: str
    actual: Callable[[Request], str]
    holds: Callable[[Request], bool]


class Closest(NamedTuple):
    request: Request
    unmet: Sequence[Condition]

    def differences(self) -> str:
        """Return `client_id is shop, expected shop2; broker is 1, expected 2`."""
        return "; ".join(f"{each.name} is {each.actual(self.request)}, expected {each.expected}" for each in self.unmet)


def closest(requests: Iterable[Request], conditions: Sequence[Condition]) -> Closest | None:
    """Return the first of the requests that meet most conditions; None without requests.

    Another API counts as two conditions: a Produce of another client is closer than another request of the client.
    """
    best: Closest | None = None
    for request in requests:
        found = Closest(request, [each for each in conditions if not each.holds(request)])
        if best is None or _distance(found) < _distance(best):
            best = found
    return best


def _distance(found: Closest) -> int:
    return sum(2 if each.name == "api" else 1 for each in found.unmet)


_CONDITIONS = (
    *("broker", "api", "client_id", "software_name", "software_version", "principal", "listener"),
    *("topic", "partition", "group", "transactional_id"),
)
_AGES = {"connection_older_than": "above", "connection_younger_than": "below"}
_ABSENT = "not in the request"
_LOOKUPS = frozenset({"ApiVersions", "Metadata"})  # of all clients
_FREQUENCY = ("request", "probability", "times", "during", "on", "schedule")


class _Active(NamedTuple):
    """A rule with the time in which it could fire."""

    change: RuleChange
    rule: Rule
    from_ns: float
    until_ns: float


def rule_never_fired(history: History) -> Iterator[Found]:
    changes = grouped(history.of(RuleChange), lambda change: change.rule_id)
    for rule_id, of_rule in changes.items():
        active = _active(of_rule, history.end_ns)
        if active is not None and not history.hits.get(rule_id):
            yield _never_fired(history, active)


def _active(changes: list[RuleChange], end_ns: int) -> _Active | None:
    added, *rest = changes
    try:
        rule = parse_rule(msgspec.json.decode(added.rule), "rule")
        from_ms = 0 if rule.after is None else parse_ms(rule.after, "after")
        until_ms = inf if rule.until is None else parse_ms(rule.until, "until")
        is_state = isinstance(rule.the_action, StateAction)
    except (FaultError, RuleProblem, msgspec.DecodeError):  # of another version of sluice
        return None
    if is_state and not from_ms:
        return None  # it begins when it is added
    ended_ns = rest[0].at_ns if rest else end_ns
    until_ns = min(ended_ns, added.at_ns + until_ms * NS_PER_MS)
    return _Active(added, rule, added.at_ns + from_ms * NS_PER_MS, until_ns)


def _never_fired(history: History, active: _Active) -> Found:
    change, rule = active.change, active.rule
    why, seqs = _reason(history, active)
    text = f"The rule is {rule_text(rule)}.\n{why}"
    names = [change.rule_id, *(value for value in (rule.client_id, rule.topic, rule.group) if value)]
    title = f"Fault rule {change.rule_id} never fired"
    return Found("rule-never-fired", "error", title, text, change.at_ns, [change.seq, *seqs], names)


def _reason(history: History, active: _Active) -> tuple[str, list[int]]:
    rule = active.rule
    if active.from_ns >= active.until_ns:
        return f"It ended, or the test did, before `after` ({rule.after}) had elapsed.", []
    requests = [one for one in history.requests if active.from_ns <= one.received_ns <= active.until_ns]
    if not requests:
        return _no_requests(history, active)
    found = closest(requests, _conditions(history, rule))
    assert found is not None
    if any(each.name == "api" for each in found.unmet) and rule.api is not None:
        of_api = _alone(rule, "api")
        if not any(of_api.hits_route(one.broker, one.api_key, one.version) for one in requests):
            return _another_api(rule.api, found.request, requests)
    request = found.request
    where = f"{request.api} v{request.version} of client {client_of(request)} at {history.when(request.received_ns)}"
    if found.unmet:
        return f"The nearest request is {where}: {found.differences()}.", [request.seq]
    if isinstance(rule.the_action, ConnectionAction):
        return f"Connections matched it, the first that of {where}, but {_frequency(rule)}.", [request.seq]
    return f"Requests matched it, the first {where}, but {_frequency(rule)}.", [request.seq]


def _another_api(api: str | list[str], nearest: Request, requests: list[Request]) -> tuple[str, list[int]]:
    client = client_of(nearest)
    of_client = [one for one in requests if client_of(one) == client]
    apis = [name for name in dict.fromkeys(one.api for one in of_client) if name not in _LOOKUPS]
    lookups = [name for name in dict.fromkeys(one.api for one in of_client) if name in _LOOKUPS]
    shown = next((one for one in of_client if one.api not in _LOOKUPS), nearest)
    name = api if isinstance(api, str) else " or ".join(api)
    return f"No client sent {name}. Client {client} sent {listed([*apis, *lookups])}.", [shown.seq]


def _no_requests(history: History, active: _Active) -> tuple[str, list[int]]:
    before = [one for one in history.requests if one.received_ns < active.from_ns]
    if not before:
        return "No client sent a request while it was active.", []
    count = counted(len(before), "request")
    return f"No client sent a request while it was active; {count} preceded it. Add the rule earlier.", [before[-1].seq]


def _frequency(rule: Rule) -> str:
    given = [f"{name}={getattr(rule, name)}" for name in _FREQUENCY if getattr(rule, name) is not None]
    return f"{', '.join(given)} selected none of them" if given else "the action does not apply to them"


def _conditions(history: History, rule: Rule) -> list[Condition]:
    opened_ns = {event.connection: event.at_ns for event in history.of(ConnectionOpened)}
    found = [
        Condition(
            name, str(getattr(rule, name)), partial(_actual, name), partial(_holds, _alone(rule, name), opened_ns)
        )
        for name in _CONDITIONS
        if getattr(rule, name) is not None
    ]
    for name, side in _AGES.items():
        if getattr(rule, name) is not None:
            holds = partial(_holds, _alone(rule, name), opened_ns)
            expected = f"{side} {getattr(rule, name)}"
            found.append(Condition("the connection's age", expected, partial(_age_text, opened_ns), holds))
    if rule.version is not None:
        first, last = Match(Conditions(api=rule.api, version=rule.version)).versions
        found.append(Condition("version", str(rule.version), _version, lambda one: first <= one.version <= last))
    action = rule.the_action
    if isinstance(action, RequestAction) and rule.api is None:
        able = f"one that {action.kind} can affect"
        found.append(Condition("api", able, partial(_actual, "api"), partial(_can_hit, action)))
    return found


def _alone(rule: Rule, name: str) -> Match:
    return Match(Conditions(**{name: getattr(rule, name)}))


def _can_hit(action: RequestAction, request: Request) -> bool:
    handler = HANDLERS.get(request.api_key)
    is_served = handler is not None and handler.min_version <= request.version <= handler.max_version
    return is_served and action.can_hit(request.api_key, request.version)


def _version(request: Request) -> str:
    return f"{request.version} of {request.api}"


def _holds(match: Match, opened_ns: dict[int, int], request: Request) -> bool:
    client = (request.client_id, request.software_name, request.software_version, request.principal, request.listener)
    named = RequestEntities(
        [(one.topic, one.partition) for one in request.partitions],
        [request.group_id] if request.group_id else [],
        [request.transactional_id] if request.transactional_id else [],
        request.sent.get("all_topics") is True,
    )
    return (
        match.hits_route(request.broker, request.api_key, request.version)
        and match.hits_client(client)
        and match.hits_names(named)
        and match.hits_age(_age_ns(opened_ns, request) / NS_PER_MS)
    )


def _age_ns(opened_ns: dict[int, int], request: Request) -> int:
    return request.received_ns - opened_ns.get(request.connection, request.received_ns)


def _age_text(opened_ns: dict[int, int], request: Request) -> str:
    return duration(_age_ns(opened_ns, request))


def _actual(name: str, request: Request) -> str:
    match name:
        case "topic":
            return ", ".join(topics_of([request])) or _ABSENT
        case "partition":
            return ", ".join(str(one.partition) for one in request.partitions) or _ABSENT
        case "group":
            return request.group_id or _ABSENT
        case "transactional_id":
            return request.transactional_id or _ABSENT
    return str(getattr(request, name)) or '""'


def rule_hits(history: History) -> Iterator[Found]:
    requests = grouped(history.requests, lambda one: one.rule_id)
    for rule_id, hits in history.hits.items():
        first = hits[0]
        apis = Counter(each.api or "connections" for each in hits)
        clients = dict.fromkeys(client_of(each) or f"broker {each.broker}" for each in hits)
        title = f"Fault rule {rule_id} fired {counted(len(hits), 'time')}: {first.action}"
        text = f"From {history.when(first.at_ns)} to {history.when(hits[-1].at_ns)}, on "
        text += f"{listed(f'{number} {api}' for api, number in apis.items())} of {listed(clients)}."
        shown = seqs(requests.get(rule_id, ())) + seqs(hits)
        yield Found("rule-fired", "info", title, text, first.at_ns, shown, [rule_id, *clients])


def scenario_steps(history: History) -> Iterator[Found]:
    for event in history.of(ScenarioStep):
        if event.problem:
            title = f"A step of scenario {event.scenario} failed: {event.what}"
            text = f"{event.step}: {event.problem}" if event.step else event.problem
            yield Found("scenario-step-failed", "error", title, text, event.at_ns, [event.seq], [event.scenario])
