"""`/api/v1/faults` of the admin port: listing, adding and removing fault rules."""

from typing import Annotated, cast

import msgspec
from msgspec import Meta

from sluice.broker.admin.operation import AdminContext, Nothing, Operation, RefusedError
from sluice.broker.faults.fault import Fault, FaultState
from sluice.broker.faults.rule import Rule, proxy_rule_schema, rule_schema
from sluice.broker.server.cluster_server import ClusterServer
from sluice.errors import FaultError, SluiceError, UnknownResourceError
from sluice.text.typed_decoding import DecodeError, read

_PATH = "/api/v1/faults"


class FaultParams(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[str, Meta(description="the id of a fault rule")]


class Released(msgspec.Struct, forbid_unknown_fields=True):
    """How many held requests to release, oldest first; by default all."""

    count: Annotated[int, Meta(ge=1, description="maximum number of requests")] | None = None


class Rules(msgspec.Struct, forbid_unknown_fields=True):
    """Several fault rules; either all are added, or none."""

    faults: list[Rule]


class _GivenRules(msgspec.Struct):
    faults: list[object]  # each is parsed by itself, for its path


class FaultShown(msgspec.Struct):
    """A fault rule and its effect.

    state: "over" means that the rule hits nothing any more, and that the states that it set are undone
    matched: number of requests, connections or brokers that it matched
    hits: number of these that it hit
    held: number of requests that it holds now
    problem: error that disabled it, else ""
    rule: the rule as it was added
    """

    id: str
    action: str
    state: FaultState
    matched: int
    hits: int
    held: int
    problem: str
    rule: Rule


class FaultsShown(msgspec.Struct):
    """Several fault rules."""

    faults: list[FaultShown]


async def _list(context: AdminContext, params: Nothing, body: Nothing) -> FaultsShown:
    return FaultsShown([describe(fault) for fault in context.server.faults])


async def _add(context: AdminContext, params: Nothing, body: object) -> FaultsShown:
    try:
        return FaultsShown([describe(fault) for fault in _added(context.server, _rules_in(body))])
    except FaultError as error:
        raise RefusedError(400, str(error), _place(error.path)) from None


async def _remove_all(context: AdminContext, params: Nothing, body: Nothing) -> FaultsShown:
    removed = context.server.faults.list()
    context.server.faults.clear()
    return FaultsShown([describe(fault) for fault in removed])


async def _get(context: AdminContext, params: FaultParams, body: Nothing) -> FaultShown:
    return describe(_find(context.server, params.id))


async def _remove(context: AdminContext, params: FaultParams, body: Nothing) -> FaultShown:
    fault = _find(context.server, params.id)
    fault.remove()
    return describe(fault)


async def _release(context: AdminContext, params: FaultParams, body: Released) -> FaultShown:
    fault = _find(context.server, params.id)
    fault.release(body.count)
    return describe(fault)


async def _get_schema(context: AdminContext, params: Nothing, body: Nothing) -> dict[str, object]:
    return proxy_rule_schema() if context.server.is_proxy else rule_schema()


def describe(fault: Fault) -> FaultShown:
    return FaultShown(
        id=fault.id,
        action=fault.action.kind,
        state=fault.state,
        matched=fault.matched,
        hits=fault.hits,
        held=fault.held,
        problem=fault.problem,
        rule=cast("Rule", fault.rule),  # of the engine
    )


_ALONE = "fault"


def _rules_in(given: object) -> list[tuple[str, object]]:
    if not isinstance(given, dict) or given.keys() != {"faults"}:
        return [(_ALONE, given)]
    try:
        several = read(given, _GivenRules).faults
    except DecodeError as error:
        raise FaultError(error.path, error.problem) from None
    return [(f"faults[{index}]", rule) for index, rule in enumerate(several)]


def _place(path: str) -> str:
    return path.removeprefix(_ALONE).removeprefix(".") if path.split(".")[0] == _ALONE else path


def _added(server: ClusterServer, given: list[tuple[str, object]]) -> list[Fault]:
    """Add all rules or none. Raises FaultError for an invalid rule, RefusedError for an id in use."""
    faults = server.faults
    rules = [(at, faults.check(rule, at)) for at, rule in given]
    taken = {fault.id for fault in faults}
    for at, rule in rules:
        if rule.id in taken:
            path = f"{at}.id"
            raise RefusedError(409, f"{path}: there is a fault rule {rule.id} already; choose another id", _place(path))
        if rule.id is not None:
            taken.add(rule.id)
    added: list[Fault] = []
    try:
        for at, rule in rules:
            added.append(faults.add(rule, at))
    except SluiceError:  # the cluster's current state does not allow a rule's action
        for fault in reversed(added):
            fault.remove()
        raise
    return added


def _find(server: ClusterServer, fault_id: str) -> Fault:
    try:
        return server.faults.get(fault_id)
    except FaultError as error:
        raise UnknownResourceError(error.problem) from None


# fmt: off
# one operation per row
OPERATIONS = (
    Operation.of("GET", _PATH, "Return all fault rules with their numbers of matches and hits.", _list),
    Operation.of("POST", _PATH, "Add one rule or several; either all are added, or none.", _add,
                 errors=(409,), documented_as=(Rule, Rules)),
    Operation.of("DELETE", _PATH, "Remove all rules.", _remove_all),
    Operation.of("GET", f"{_PATH}/schema", "Return the JSON Schema of a rule with a possible action.", _get_schema),
    Operation.of("GET", f"{_PATH}/{{id}}", "Return a rule.", _get, errors=(404,)),
    Operation.of("DELETE", f"{_PATH}/{{id}}", "Remove a rule.", _remove, errors=(404,)),
    Operation.of("POST", f"{_PATH}/{{id}}/release", "Release requests that a rule holds.", _release, errors=(404,)),
)
# fmt: on
