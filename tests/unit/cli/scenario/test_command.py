"""`sluice scenario`: the catalogue, its files, and the schema."""

import json
import tomllib
from pathlib import Path

from click.testing import CliRunner, Result

from sluice.broker.scenarios.files import names, scenario_of
from sluice.cli.main import cli

ROOT = Path(__file__).parents[4]


def invoke(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


def test_the_catalogue_is_listed_for_people() -> None:
    head, *lines = invoke("scenario", "list").stdout.splitlines()
    assert head.split() == ["NAME", "BROKERS", "TAKES", "SHOWS"]
    assert [line.split()[0] for line in lines] == names()


def test_the_catalogue_is_listed_for_machines() -> None:
    listed = json.loads(invoke("scenarios", "list", "--format", "json").stdout)
    assert [entry["name"] for entry in listed] == names()


def test_a_scenario_is_shown_as_a_file_to_begin_with() -> None:
    shown = invoke("scenario", "show", "rolling-restart")
    assert shown.exit_code == 0
    assert scenario_of(tomllib.loads(shown.stdout)).name == "rolling-restart"


def test_one_that_is_not_there_is_told_in_one_line() -> None:
    shown = invoke("scenario", "show", "roling-restart")
    assert shown.exit_code == 2
    assert "roling-restart: unknown scenario, did you mean rolling-restart?" in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


def test_the_schema_is_the_published_one() -> None:
    assert invoke("scenario", "schema").stdout == (ROOT / "docs" / "scenario.schema.json").read_text()
