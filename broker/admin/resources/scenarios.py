"""`/api/v1/scenarios` of the admin port: the catalogue, and runs of scenarios."""

from typing import Annotated

import msgspec
from msgspec import Meta

from sluice.broker.admin.operation import AdminContext, Nothing, Operation, RefusedError
from sluice.broker.scenarios.files import Entry, catalogued, entries, scenario_of
from sluice.broker.scenarios.model import Scenario
from sluice.broker.scenarios.report import RunReport
from sluice.broker.scenarios.run import proxy_refusal
from sluice.errors import ScenarioError

_PATH = "/api/v1/scenarios"


class RunParams(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[str, Meta(description="the id of a run")]


class RunRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A scenario to run: `name` of the catalogue, or `scenario`. `keep` keeps the final state after the run."""

    name: str | None = None
    scenario: dict[str, object] | None = None
    keep: bool = False


class WantedName(msgspec.Struct, forbid_unknown_fields=True):
    """A scenario of the catalogue. `keep` keeps the final state after the run."""

    name: str
    keep: bool = False


class WantedScenario(msgspec.Struct, forbid_unknown_fields=True):
    """A scenario. `keep` keeps the final state after the run."""

    scenario: Scenario
    keep: bool = False


class CatalogueShown(msgspec.Struct):
    """The scenarios of the catalogue; at a proxy, those that it can run."""

    scenarios: list[Entry]


class RunsShown(msgspec.Struct):
    """The latest runs, newest last."""

    runs: list[RunReport]


async def _get_catalogue(context: AdminContext, params: Nothing, body: Nothing) -> CatalogueShown:
    found = entries()
    if context.server.is_proxy:
        found = [entry for entry in found if not proxy_refusal(catalogued(entry.name))]
    return CatalogueShown(found)


async def _run(context: AdminContext, params: Nothing, body: RunRequest) -> RunReport:
    try:
        if body.name is not None and body.scenario is None:
            scenario = catalogued(body.name)
        elif body.scenario is not None and body.name is None:
            scenario = scenario_of(body.scenario)
        else:
            words = 'expected the body {"name": NAME} or {"scenario": {...}}, optionally with "keep": true'
            raise RefusedError(400, words)
    except ScenarioError as error:
        place = "name" if body.scenario is None else f"scenario.{error.path}".removesuffix(".")
        raise RefusedError(400, str(error), place) from None
    return context.runs.start(scenario, keep=body.keep).report()


async def _get_runs(context: AdminContext, params: Nothing, body: Nothing) -> RunsShown:
    return RunsShown([run.report() for run in context.runs.all()])


async def _get_run(context: AdminContext, params: RunParams, body: Nothing) -> RunReport:
    return context.runs.get(params.id).report()


async def _stop_run(context: AdminContext, params: RunParams, body: Nothing) -> RunReport:
    run = context.runs.get(params.id)
    run.stop()
    return run.report()


# fmt: off
# one operation per row
OPERATIONS = (
    Operation.of("GET", _PATH, "Return the catalogue.", _get_catalogue),
    Operation.of("POST", f"{_PATH}/run", "Run a scenario; only one can run at a time.", _run, errors=(409,),
                 documented_as=(WantedName, WantedScenario)),
    Operation.of("GET", f"{_PATH}/runs", "Return the latest runs, newest last.", _get_runs),
    Operation.of("GET", f"{_PATH}/runs/{{id}}", "Return a run.", _get_run, errors=(404,)),
    Operation.of("DELETE", f"{_PATH}/runs/{{id}}", "Stop a run if it is in progress.", _stop_run, errors=(404,)),
)
# fmt: on
