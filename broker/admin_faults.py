"""`/api/v1/faults` of the admin port: the fault rules, adding and removing them.

GET /api/v1/faults           all rules, with what they have matched and hit
POST /api/v1/faults          a rule, or {"faults": [...]}: all of them, or none
GET /api/v1/faults/{id}      one of them
DELETE /api/v1/faults/{id}   removes it
DELETE /api/v1/faults        removes all
GET /api/v1/faults/schema    the JSON Schema of a rule
"""

from typing import TYPE_CHECKING

import msgspec
from starlette.routing import Route

from sluice.errors import SluiceError

from .admin_requests import body_of, guarded
from .cluster_server import ClusterError, UnknownResourceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from .cluster_server import ClusterServer
    from .faults.fault import Fault


def routes(server: "ClusterServer", refused: "Callable[[Request], Response | None]") -> list[Route]:
    """What the admin port serves of fault rules; `refused` answers who may not ask."""

    async def get_faults(request: "Request") -> object:
        return {"faults": [describe(fault) for fault in server.faults]}

    async def post_faults(request: "Request") -> object:
        return {"faults": [describe(fault) for fault in _add(server, msgspec.json.decode(await body_of(request)))]}

    async def delete_faults(request: "Request") -> object:
        removed = server.faults.list()
        server.faults.clear()
        return {"faults": [describe(fault) for fault in removed]}

    async def get_fault(request: "Request") -> object:
        return describe(_find(server, request.path_params["id"]))

    async def delete_fault(request: "Request") -> object:
        fault = _find(server, request.path_params["id"])
        fault.remove()
        return describe(fault)

    async def get_schema(request: "Request") -> object:
        from .faults.rule import rule_schema

        return rule_schema()

    return [
        Route("/api/v1/faults", guarded(get_faults, refused), methods=["GET"]),
        Route("/api/v1/faults", guarded(post_faults, refused), methods=["POST"]),
        Route("/api/v1/faults", guarded(delete_faults, refused), methods=["DELETE"]),
        Route("/api/v1/faults/schema", guarded(get_schema, refused), methods=["GET"]),
        Route("/api/v1/faults/{id}", guarded(get_fault, refused), methods=["GET"]),
        Route("/api/v1/faults/{id}", guarded(delete_fault, refused), methods=["DELETE"]),
    ]


def describe(fault: "Fault") -> dict[str, object]:
    """A rule in force, over, disabled or removed; `rule` is what was given."""
    if fault.is_removed:
        state = "removed"
    elif not fault.enabled:
        state = "disabled"
    else:
        state = "over" if fault.is_over else "in force"
    return {
        "id": fault.id,
        "action": fault.action.kind,
        "state": state,
        "matched": fault.matched,
        "hits": fault.hits,
        "problem": fault.problem,
        "rule": fault.rule,
    }


def _add(server: "ClusterServer", given: object) -> "list[Fault]":
    """All of them, or none. Raises FaultError for what cannot work, ClusterError for an id that is taken."""
    faults = server.faults
    rules = [(at, faults.check(rule, at)) for at, rule in _rules_in(given)]
    taken = {fault.id for fault in faults}
    for at, rule in rules:
        if rule.id in taken:
            raise ClusterError(f"{at}.id: there is a fault rule {rule.id} already")
        if rule.id is not None:
            taken.add(rule.id)
    added: list[Fault] = []
    try:
        for at, rule in rules:
            added.append(faults.add(rule, at))
    except SluiceError:  # a state that cannot be brought about as things are
        for fault in reversed(added):
            fault.remove()
        raise
    return added


def _rules_in(given: object) -> list[tuple[str, object]]:
    """The rules of a request, each with the path to it."""
    several = given.get("faults") if isinstance(given, dict) and given.keys() == {"faults"} else None
    if not isinstance(several, list):
        return [("fault", given)]
    return [(f"faults[{index}]", rule) for index, rule in enumerate(several)]


def _find(server: "ClusterServer", fault_id: str) -> "Fault":
    from .faults.errors import FaultError

    try:
        return server.faults.get(fault_id)
    except FaultError as error:
        raise UnknownResourceError(error.problem) from None
