"""The published schema: consistent with the validation in sluice."""

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sluice.broker.scenarios.files import names, scenario_of, text_of
from sluice.errors import ScenarioError

PUBLISHED = Path(__file__).parents[4] / "docs" / "scenario.schema.json"


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(PUBLISHED.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", names())
def test_catalogue_matches_the_schema(name: str, validator: Any) -> None:
    validator.validate(tomllib.loads(text_of(name)))


WRONG: list[dict[str, Any]] = [
    {},
    {"name": "Rolling Restart"},
    {"name": "s", "brokers": 0},
    {"name": "s", "step": []},
    {"name": "s", "steps": [{"stop": 1}]},
    {"name": "s", "steps": [{"at": "1s"}]},
    {"name": "s", "steps": [{"at": "1s", "stop": 1, "start": 1}]},
    {"name": "s", "steps": [{"at": "a while", "stop": 1}]},
    {"name": "s", "steps": [{"at": -1, "stop": 1}]},
    {"name": "s", "steps": [{"at": "1s", "elect": {"topic": "t", "election": "fair"}}]},
]


@pytest.mark.parametrize("document", WRONG, ids=map(str, WRONG))
def test_schema_rejects_invalid_scenarios(document: dict[str, Any], validator: Any) -> None:
    assert not validator.is_valid(document)
    with pytest.raises(ScenarioError):
        scenario_of(document)
