"""SARIF: valid by its schema, and with what code hosts require."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from sluice.lint.clients import ClientKey
from sluice.lint.findings import Result
from sluice.lint.report.sarif import sarif
from tests.support.lint_results import JAVA, RULES, finding, result

SCHEMA = Path("tests/fixtures/sarif-schema-2.1.0.json")


def log(location: str = "conf/client.properties", shown: Result | None = None) -> Any:
    return json.loads(msgspec.json.encode(sarif(shown or result(), RULES, location)))


def test_it_is_valid() -> None:
    jsonschema.validate(log(), json.loads(SCHEMA.read_text()))


def test_each_result_has_its_rule_and_level() -> None:
    (run,) = log()["runs"]
    names = [each["id"] for each in run["tool"]["driver"]["rules"]]
    assert [names[each["ruleIndex"]] for each in run["results"]] == [each["ruleId"] for each in run["results"]]
    assert [each["level"] for each in run["results"]] == ["error", "warning", "note"]


LOCATIONS = [("conf/my app.yml", "conf/my%20app.yml"), ("http://127.0.0.1:9644", "http://127.0.0.1:9644"), ("-", "-")]


@pytest.mark.parametrize(("location", "uri"), LOCATIONS)
def test_the_location_is_a_uri(location: str, uri: str) -> None:
    (run,) = log(location)["runs"]
    locations = {each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]}
    assert locations == {uri}


def test_the_fingerprint_survives_an_upgrade_of_the_client() -> None:
    older = ClientKey("shop", "apache-kafka-java", "3.9.0")
    other = ClientKey("till", "apache-kafka-java", "4.4.0")
    prints = []
    for key in (JAVA, older, other):
        one = msgspec.structs.replace(result(), findings=[finding("lost-records", str(key), key)])
        prints.append(log(shown=one)["runs"][0]["results"][0]["partialFingerprints"])
    assert prints[0] == prints[1] != prints[2]
