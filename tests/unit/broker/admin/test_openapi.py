"""The OpenAPI document: consistent with the table of operations."""

import json
from typing import Any

import pytest

from sluice.broker.admin.application import OPERATIONS
from sluice.broker.admin.operation import Nothing, Operation
from sluice.journal_events import KINDS
from sluice.web import load
from tests.support.virtual_broker import VirtualBroker
from tools.docs.reference.openapi import FILE

DOCUMENT: dict[str, Any] = json.loads(FILE.read_text())
ALL = (*OPERATIONS, *load()(VirtualBroker().cluster_server).operations)


def documented(one: Operation) -> Any:
    return DOCUMENT["paths"][one.path][one.method.lower()]


def test_every_operation_is_documented() -> None:
    documented = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert documented == {(one.method, one.path) for one in ALL}
    assert ("GET", "/api/v1/stream") in documented


def test_every_reference_is_defined() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    found = {part.split('"')[0] for part in json.dumps(DOCUMENT).split('"$ref": "#/components/schemas/')[1:]}
    assert found <= schemas.keys()
    assert schemas.keys() - found <= {"sluice.broker.faults.fault.Action"}, "every schema is referenced"


@pytest.mark.parametrize("one", ALL, ids=lambda one: f"{one.method} {one.path}")
class TestEveryOperation:
    def test_documents_all_parameters(self, one: Operation) -> None:
        names = {each["name"]: each["in"] for each in documented(one).get("parameters", [])}
        fields = [name for name in one.params.__struct_fields__ if name != "accept"]
        in_url = {name: "path" if f"{{{name}}}" in one.path else "query" for name in fields}
        sender = {} if one.method == "GET" or one.has_body else {"x-sluice-request": "header"}
        assert names == in_url | sender

    def test_documents_a_body_only_if_one_is_accepted(self, one: Operation) -> None:
        assert ("requestBody" in documented(one)) == (one.bodies != (Nothing,))
        assert not (one.method == "GET" and one.has_body)

    def test_documents_its_error_statuses(self, one: Operation) -> None:
        statuses = set(documented(one)["responses"])
        assert {"200", "400", "403"} <= statuses
        assert ("404" in statuses) >= bool(one.in_path)
        assert ("401" in statuses) == (one.path != "/healthz")


def test_event_filters_list_their_values() -> None:
    parameters = {each["name"]: each["schema"] for each in DOCUMENT["paths"]["/api/v1/journal"]["get"]["parameters"]}
    assert parameters["kind"] == {"type": "array", "items": {"type": "string", "enum": [*KINDS]}}
    assert "Produce" in parameters["api"]["items"]["enum"]


def test_operation_ids_are_unique() -> None:
    ids = [documented(one)["operationId"] for one in ALL]
    assert len(ids) == len(set(ids))
