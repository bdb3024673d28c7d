"""The table of Kafka's APIs in docs/reference/api-coverage.md agrees with the registry and the vectors."""

import json
import os
from pathlib import Path

import pytest

from sluice.broker.exchange.registry import HANDLERS
from tools.docs.kafka_apis import KAFKA_APIS

# A broker of Kafka 4.4.0 advertises them, and forwards them to the controller.
ADVERTISED_BUT_NOT_IN_THE_VECTORS = {"DescribeQuorum", "UpdateFeatures"}
_VECTORS = Path(os.environ.get("SLUICE_VECTORS", "")) / "api_versions-4.4.0.jsonl"


def test_every_api_key_up_to_the_last_is_listed_once() -> None:
    assert [api.api_key for api in KAFKA_APIS] == list(range(len(KAFKA_APIS)))


def test_api_is_served_or_has_a_reason() -> None:
    assert {api.api_key for api in KAFKA_APIS if not api.not_served} == HANDLERS.keys()


@pytest.mark.skipif(
    not _VECTORS.is_file(), reason="no api_versions-4.4.0.jsonl; set SLUICE_VECTORS to the folder of the vectors"
)
def test_names_and_versions_match_kafka() -> None:
    declared = [json.loads(line) for line in _VECTORS.read_text().splitlines()]
    listed = {
        api.api_key: (api.name, api.versions)
        for api in KAFKA_APIS
        if api.versions and api.name not in ADVERTISED_BUT_NOT_IN_THE_VECTORS
    }
    assert listed == {one["api_key"]: (one["name"], _versions(one["min"], one["highest_stable"])) for one in declared}


def _versions(least: int, most: int) -> str:
    return str(least) if least == most else f"{least}-{most}"
