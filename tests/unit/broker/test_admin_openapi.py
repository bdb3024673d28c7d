"""The OpenAPI document: fresh, and it says of each operation what the table says."""

import json
from pathlib import Path
from typing import Any

import pytest

from sluice.broker.admin import application
from sluice.broker.admin_openapi import document_text
from sluice.broker.admin_operation import Nothing, Operation
from sluice.broker.admin_operations import OPERATIONS
from tests.support.http import call
from tests.support.virtual_broker import VirtualBroker

PUBLISHED = Path(__file__).parents[3] / "docs" / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(PUBLISHED.read_text())


def told(one: Operation) -> Any:
    return DOCUMENT["paths"][one.path][one.method.lower()]


def test_the_published_document_is_up_to_date() -> None:
    words = "python -m sluice.broker.admin_openapi > docs/openapi.json writes it"
    assert PUBLISHED.read_text() == document_text(OPERATIONS), words


def test_a_broker_serves_the_same() -> None:
    status, _, body = call(application(VirtualBroker().cluster_server), "/api/openapi.json")
    assert (status, json.loads(body)) == (200, DOCUMENT)


def test_every_reference_leads_somewhere() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    found = {part.split('"')[0] for part in json.dumps(DOCUMENT).split('"$ref": "#/components/schemas/')[1:]}
    assert found <= schemas.keys()
    assert schemas.keys() - found <= {"sluice.broker.faults.actions.action.Action"}, "nobody uses it"


@pytest.mark.parametrize("one", OPERATIONS, ids=lambda one: f"{one.method} {one.path}")
class TestEveryOperation:
    def test_names_all_of_its_parameters(self, one: Operation) -> None:
        names = {each["name"]: each["in"] for each in told(one).get("parameters", [])}
        fields = [name for name in one.asked.__struct_fields__ if name != "accept"]
        in_url = {name: "path" if f"{{{name}}}" in one.path else "query" for name in fields}
        sender = {} if one.method == "GET" or one.has_body else {"x-sluice-request": "header"}
        assert names == in_url | sender

    def test_has_a_body_where_one_is_read(self, one: Operation) -> None:
        assert ("requestBody" in told(one)) == (one.bodies != (Nothing,))
        assert not (one.method == "GET" and one.has_body)

    def test_tells_how_it_can_be_refused(self, one: Operation) -> None:
        statuses = set(told(one)["responses"])
        assert {"200", "400", "403"} <= statuses
        assert ("404" in statuses) >= bool(one.in_path)
        assert ("401" in statuses) == (one.path != "/healthz")


def test_ids_are_told_apart() -> None:
    ids = [told(one)["operationId"] for one in OPERATIONS]
    assert len(ids) == len(set(ids))
