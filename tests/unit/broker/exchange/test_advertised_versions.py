"""API versions that `sluice serve --as kafka-X` advertises and serves."""

import pytest

from sluice.broker.exchange.advertised_versions import advertised_by, missing, served_as
from sluice.broker.exchange.registry import HANDLERS
from sluice.config.kafka_releases import ALL
from sluice.config.property_table import AS_RELEASES
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.records import produce
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

API_VERSIONS, METADATA, PRODUCE, FETCH = 18, 3, 0, 1


RELEASE_VERSIONS = [
    (ALL, (0, 13), (0, 18)),
    ("kafka-0.9", (0, 1), (0, 1)),
    ("kafka-0.10.2", (0, 2), (0, 3)),
    ("kafka-1.1", (0, 5), (0, 7)),
    ("kafka-2.8", (0, 9), (0, 12)),
    ("kafka-3.4", (0, 9), (0, 13)),
    ("kafka-3.9", (0, 11), (0, 17)),
    ("kafka-4.4", (0, 13), (4, 18)),
]


@pytest.mark.parametrize(("release", "produce_versions", "fetch_versions"), RELEASE_VERSIONS)
def test_each_release_advertises_its_own_versions(
    release: str, produce_versions: tuple[int, int], fetch_versions: tuple[int, int]
) -> None:
    advertised = advertised_by(release)
    assert (advertised[PRODUCE], advertised[FETCH]) == (produce_versions, fetch_versions)


@pytest.mark.parametrize("release", AS_RELEASES)
def test_advertised_versions_of_a_release_are_served(release: str) -> None:
    for key, (first, last) in advertised_by(release).items():
        handler = HANDLERS[key]
        assert handler.min_version <= first <= last <= handler.max_version, API_KEYS[key].name
    assert served_as(release).keys() == advertised_by(release).keys()


def test_kafka_4_4_advertises_produce_0_and_does_not_serve_it() -> None:
    assert advertised_by("kafka-4.4")[PRODUCE] == (0, 13)
    assert served_as("kafka-4.4")[PRODUCE] == (3, 13)
    broker = broker_with_topic("sluice.kafka.release=kafka-4.4")
    client = broker.client()
    client.send(produce(2), 2)
    assert not client.is_open


def test_version_newer_than_the_release_closes_the_connection() -> None:
    broker = VirtualBroker("sluice.kafka.release=kafka-1.1")
    client = broker.client()
    response = client.call(ApiVersionsRequest(), 1)
    assert {api.api_key: (api.min_version, api.max_version) for api in response.api_keys} == advertised_by("kafka-1.1")
    client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 5)
    client.send(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 6)
    assert not client.is_open


def test_newer_api_versions_request_returns_the_supported_range_of_the_release() -> None:
    client = VirtualBroker("sluice.kafka.release=kafka-0.10.2").client()
    client.send(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3, answered_in=0)
    response = client.response().message
    assert response.error_code == 35
    assert [(api.api_key, api.min_version, api.max_version) for api in response.api_keys] == [(API_VERSIONS, 0, 0)]


def test_kafka_0_9_does_not_serve_api_versions() -> None:
    client = VirtualBroker("sluice.kafka.release=kafka-0.9").client()
    client.send(ApiVersionsRequest(), 0)
    assert not client.is_open


def test_missing_apis_are_listed_by_name() -> None:
    assert missing(ALL) == []
    assert "CreateDelegationToken" in missing("kafka-2.8")
    assert "Fetch" not in missing("kafka-2.8")
