"""The table of Kafka's APIs in docs/reference/api-coverage.md agrees with the registry and the vectors."""

from typing import Any

from sluice.broker.exchange.registry import HANDLERS
from tests.support.vectors import vectors
from tools.docs.reference.kafka_apis import KAFKA_APIS

# A broker of Kafka 4.4.0 advertises them, and forwards them to the controller.
ADVERTISED_BUT_NOT_IN_THE_VECTORS = {"DescribeQuorum", "UpdateFeatures"}


def test_every_api_key_up_to_the_last_is_listed_once() -> None:
    assert [api.api_key for api in KAFKA_APIS] == list(range(len(KAFKA_APIS)))


def test_api_is_served_or_has_a_reason() -> None:
    assert {api.api_key for api in KAFKA_APIS if not api.not_served} == HANDLERS.keys()


def test_names_and_versions_match_kafka() -> None:
    declared: list[Any] = list(vectors("api_versions-4.4.0"))
    listed = {
        api.api_key: (api.name, api.versions)
        for api in KAFKA_APIS
        if api.versions and api.name not in ADVERTISED_BUT_NOT_IN_THE_VECTORS
    }
    assert listed == {one["api_key"]: (one["name"], _versions(one["min"], one["highest_stable"])) for one in declared}


def _versions(least: int, most: int) -> str:
    return str(least) if least == most else f"{least}-{most}"
