"""`/api/v1/scenarios`: the catalogue, runs, and errors for invalid requests."""

import pytest

from sluice.broker.scenarios.files import names
from tests.support.http import Admin

RUN, RUNS = "/api/v1/scenarios/run", "/api/v1/scenarios/runs"
SHORT = {"name": "short", "brokers": 3, "steps": [{"at": "1s", "stop": 2}]}


@pytest.fixture
def admin() -> Admin:
    """The admin port of three brokers."""
    return Admin("sluice.brokers=3")


def test_catalogue_is_listed(admin: Admin) -> None:
    status, result = admin.send("/api/v1/scenarios")
    assert status == 200
    assert [entry["name"] for entry in result["scenarios"]] == names()
    assert {*result["scenarios"][0]} == {"name", "description", "brokers", "duration_ms", "loses_records"}


def test_scenario_runs_and_reports_its_steps(admin: Admin) -> None:
    status, started = admin.send(RUN, "POST", {"scenario": SHORT})
    assert (status, started["id"], started["state"], started["steps"]) == (200, "run-1", "running", [])
    admin.broker.advance(1000)
    status, result = admin.send(f"{RUNS}/run-1")
    assert status == 200
    assert result["state"] == "ended"
    assert result["done"]
    assert result["steps"] == [{"at_ms": 1000.0, "step": "steps[0].stop", "what": "broker 2 stops", "problem": ""}]
    assert admin.send(RUNS) == (200, {"runs": [result]})
    assert admin.broker.cluster.controller.is_running(2), "the broker is restarted at the end"


def test_catalogue_scenario_runs_by_name_and_can_keep_its_changes(admin: Admin) -> None:
    assert admin.send(RUN, "POST", {"name": "rolling-restart", "keep": True})[1]["scenario"] == "rolling-restart"
    admin.broker.advance(1000)
    status, result = admin.send(f"{RUNS}/run-1", "DELETE")
    assert (status, result["state"], result["done"], result["elapsed_ms"]) == (200, "stopped", True, 1000)
    assert not admin.broker.cluster.controller.is_running(1)


def test_only_one_scenario_runs_at_a_time(admin: Admin) -> None:
    admin.send(RUN, "POST", {"scenario": SHORT})
    assert admin.send(RUN, "POST", {"scenario": SHORT}) == (
        409,
        {"error": "run-1 (short) is in progress. Stop it first"},
    )
    admin.broker.advance(1000)
    assert admin.send(RUN, "POST", {"scenario": SHORT})[1]["id"] == "run-2"


def test_oldest_runs_are_deleted(admin: Admin) -> None:
    for _ in range(102):
        admin.send(RUN, "POST", {"scenario": {"name": "s", "steps": [{"at": 0, "say": "hello"}]}})
    assert [run["id"] for run in admin.send(RUNS)[1]["runs"]][:1] == ["run-3"]


WRONG = {
    "no scenario": ({}, 400, 'expected the body {"name": NAME} or {"scenario": {...}}, optionally'),
    "name and scenario": ({"name": "a", "scenario": {}}, 400, 'expected the body {"name": NAME} or'),
    "deeply nested body": (
        '{"scenario": {"name": ' + "[" * 5000 + "]" * 5000 + "}}",
        400,
        "the body is nested too deeply",
    ),
    "invalid JSON": ("name = 'x'", 400, "the body is not JSON: JSON is malformed"),
    "unknown scenario name": (
        {"name": "rolling"},
        400,
        "rolling: unknown scenario; expected a file that ends in .toml",
    ),
    "name of a file": (
        {"name": "/etc/hosts.json"},
        400,
        "/etc/hosts.json: unknown scenario; expected a file that ends in ",
    ),
    "contradictory steps": (
        {"scenario": {"name": "s", "steps": [{"at": "1s", "start": 1}]}},
        400,
        "steps[0].start: at 1 s: broker 1 is running at this time",
    ),
    "unknown brokers": (
        {"scenario": {"name": "s", "brokers": 4, "duration": "1s"}},
        409,
        "brokers: the scenario expects 1, 2, 3, 4",
    ),
    "no steps": ({"scenario": {"name": "s"}}, 400, "steps: missing; expected one or more, or a duration"),
}


@pytest.mark.parametrize(("body", "status", "error"), WRONG.values(), ids=WRONG)
def test_invalid_request_is_rejected_with_the_accepted_values(
    admin: Admin, body: object, status: int, error: str
) -> None:
    actual_status, result = admin.send(RUN, "POST", body)
    assert actual_status == status
    assert result["error"].startswith(error)


PLACES = {
    "unknown scenario name": ({"name": "rolling"}, "name"),
    "field of a step": ({"scenario": {"name": "s", "steps": [{"at": "soon"}]}}, "scenario.steps[0].at"),
    "field of a rule": ({"scenario": {"name": "s", "faults": [{"acton": 1}]}}, "scenario.faults[0].acton"),
    "contradictory steps": (WRONG["contradictory steps"][0], "scenario.steps[0].start"),
    "broker property": ({"scenario": {"name": "s", "config": {"num.partition": 1}}}, "scenario.config"),
}


@pytest.mark.parametrize(("body", "path"), PLACES.values(), ids=PLACES)
def test_error_names_the_path_in_the_body(admin: Admin, body: object, path: str) -> None:
    status, result = admin.send(RUN, "POST", body)
    assert (status, result["path"]) == (400, path)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_unknown_run_is_not_found(admin: Admin, method: str) -> None:
    assert admin.send(f"{RUNS}/run-7", method) == (404, {"error": "unknown run run-7; no scenario has run yet"})


@pytest.mark.parametrize(
    ("path", "method"), [("/api/v1/scenarios", "GET"), (RUN, "POST"), (RUNS, "GET"), (f"{RUNS}/run-1", "DELETE")]
)
def test_missing_token_is_rejected(path: str, method: str) -> None:
    assert Admin("sluice.admin.token=secret").send(path, method)[0] == 401
