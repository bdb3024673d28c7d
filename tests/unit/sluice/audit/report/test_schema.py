"""The published schema: satisfied by reports, and rejecting invalid ones."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sluice.audit.report.files import as_json
from tests.support.audit_results import result, subject, verdict, with_everything

PUBLISHED = Path(__file__).parents[5] / "docs" / "audit.schema.json"


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(PUBLISHED.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_reports_satisfy_the_schema(validator: Any) -> None:
    validator.validate(json.loads(as_json(with_everything())))


def test_every_field_is_described() -> None:
    for name, definition in json.loads(PUBLISHED.read_text())["$defs"].items():
        for field, words in definition.get("properties", {}).items():
            assert words.get("description"), f"{name}.{field}"


def _wrong(**fields: object) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(as_json(result(subject("a", "1", verdict()))))
    report["subjects"][0]["verdicts"][0].update(fields)
    return report


@pytest.mark.parametrize(
    "report", [{}, {"subjects": []}, _wrong(state="fine"), _wrong(runs="3"), _wrong(why=None)], ids=str
)
def test_invalid_report_is_rejected(report: dict[str, Any], validator: Any) -> None:
    assert not validator.is_valid(report)
