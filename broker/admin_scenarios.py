"""`/api/v1/scenarios` of the admin port: the catalogue, and runs of its scenarios or of others.

GET /api/v1/scenarios                the catalogue
POST /api/v1/scenarios/run           {"name": NAME} or {"scenario": {...}}; with "keep": true all stays as it is then
GET /api/v1/scenarios/runs           all runs, the newest last
GET /api/v1/scenarios/runs/{id}      one of them
DELETE /api/v1/scenarios/runs/{id}   stops it, if it is under way
"""

from functools import cache
from typing import TYPE_CHECKING

import msgspec
from starlette.routing import Route

from .admin_requests import body_of, guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from .cluster_server import ClusterServer
    from .scenarios.runs import Runs


class _Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """What is to run."""

    name: str | None = None
    scenario: dict[str, object] | None = None
    keep: bool = False


def routes(server: "ClusterServer", refused: "Callable[[Request], Response | None]") -> list[Route]:
    """What the admin port serves of scenarios; `refused` answers who may not ask."""

    @cache
    def runs() -> "Runs":
        from .scenarios.runs import Runs  # few ever run one

        return Runs(server)

    async def get_catalogue(request: "Request") -> object:
        from .scenarios.files import entries

        return {"scenarios": entries()}

    async def post_run(request: "Request") -> object:
        from .scenarios.files import catalogued, scenario_of

        wanted = msgspec.json.decode(await body_of(request), type=_Wanted)
        if wanted.name is not None and wanted.scenario is None:
            scenario = catalogued(wanted.name)
        elif wanted.scenario is not None and wanted.name is None:
            scenario = scenario_of(wanted.scenario)
        else:
            raise ValueError('the body must be {"name": NAME} or {"scenario": {...}}, with "keep": true or without')
        return runs().start(scenario, keep=wanted.keep).report()

    async def get_runs(request: "Request") -> object:
        return {"runs": [run.report() for run in runs().all()]}

    async def get_run(request: "Request") -> object:
        return runs().get(request.path_params["id"]).report()

    async def delete_run(request: "Request") -> object:
        run = runs().get(request.path_params["id"])
        run.stop()
        return run.report()

    return [
        Route("/api/v1/scenarios", guarded(get_catalogue, refused)),
        Route("/api/v1/scenarios/run", guarded(post_run, refused), methods=["POST"]),
        Route("/api/v1/scenarios/runs", guarded(get_runs, refused)),
        Route("/api/v1/scenarios/runs/{id}", guarded(get_run, refused), methods=["GET"]),
        Route("/api/v1/scenarios/runs/{id}", guarded(delete_run, refused), methods=["DELETE"]),
    ]
