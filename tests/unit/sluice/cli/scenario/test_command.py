"""`sluice scenario`: the catalogue, scenario files, and the schema."""

import json
import tomllib
from pathlib import Path

from click.testing import CliRunner, Result

from sluice.broker.scenarios.files import names, scenario_of
from sluice.cli.main import cli
from tests.support.command_lines import usage_error

ROOT = Path(__file__).parents[5]


def invoke(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


def test_catalogue_is_listed_as_text() -> None:
    head, *lines = invoke("scenario", "list").stdout.splitlines()
    assert head.split() == ["NAME", "BROKERS", "TAKES", "SHOWS"]
    assert [line.split()[0] for line in lines] == names()


def test_catalogue_is_listed_as_json() -> None:
    listed = json.loads(invoke("scenarios", "list", "--format", "json").stdout)
    assert [entry["name"] for entry in listed] == names()


def test_scenario_is_printed_as_a_file() -> None:
    shown = invoke("scenario", "show", "rolling-restart")
    assert shown.exit_code == 0
    assert scenario_of(tomllib.loads(shown.stdout)).name == "rolling-restart"


def test_unknown_scenario_is_reported_in_one_line() -> None:
    error = usage_error("scenario", "show", "roling-restart")
    assert "roling-restart: unknown scenario; expected a file that ends in .toml" in error


def test_schema_equals_the_published_one() -> None:
    assert invoke("scenario", "schema").stdout == (ROOT / "docs" / "scenario.schema.json").read_text()
