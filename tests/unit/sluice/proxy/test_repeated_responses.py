"""Repeated responses to ApiVersions and Metadata: decoded once, with the same bytes as if each was decoded."""

from collections.abc import Iterator
from typing import Any

import pytest

from sluice.protocol.apis import ApiKey
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.proxy import repeated_responses
from sluice.proxy.upstream.forwarded_route import ForwardedRoute
from tests.support.virtual_broker import Client, VirtualBroker
from tests.support.virtual_proxy import VirtualProxy, proxy_with_topic

VERSIONS = ApiVersionsRequest(client_software_name="shop", client_software_version="1")
METADATA = MetadataRequest(topics=None)
UNKNOWN = MetadataRequest(topics=[MetadataRequestTopic(name="unknown")], allow_auto_topic_creation=False)
REQUESTS = [
    *(pytest.param(VERSIONS, version, id=f"ApiVersions v{version}") for version in range(5)),
    *(pytest.param(METADATA, version, id=f"Metadata v{version}") for version in range(1, 14)),
    pytest.param(UNKNOWN, 9, id="Metadata of an unknown topic"),
]


def decoded(proxy: VirtualProxy, api: int, version: int) -> list[Message]:
    """Return the responses of a route that will be decoded."""
    route = proxy.server.exchange.routes.find(api << 16 | version)
    assert isinstance(route, ForwardedRoute)
    decode, found = route.decode_response, []

    def noted(*arguments: Any) -> Any:
        response, end = decode(*arguments)
        found.append(response)
        return response, end

    route.decode_response = noted
    return found


@pytest.mark.parametrize(("request_", "version"), REQUESTS)
def test_a_repeated_response_has_the_same_bytes(
    request_: Message, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def responses() -> Iterator[bytes]:
        proxy = proxy_with_topic()
        for client in (proxy.client(), proxy.client("another")):
            client.send(request_, version)
            client.send(request_, version)
            yield from (written[8:] for written in client.transport.writes)  # without correlation ids

    kept = [*responses()]
    assert len(kept) == 4
    monkeypatch.setattr(repeated_responses, "REPEATED", frozenset())
    assert kept == [*responses()]


@pytest.mark.parametrize(
    ("request_", "version", "times"),
    [(VERSIONS, 4, 1), (METADATA, 12, 1), (UNKNOWN, 9, 3)],
    ids=["ApiVersions", "Metadata", "Metadata with an error, which is counted"],
)
def test_a_response_is_decoded_once(request_: Message, version: int, times: int) -> None:
    proxy = proxy_with_topic()
    api = ApiKey.API_VERSIONS if request_ is VERSIONS else ApiKey.METADATA
    found = decoded(proxy, api, version)
    for number in range(3):
        proxy.client(f"client-{number}").call(request_, version)
    assert len(found) == times
    errors = proxy.cluster_server.upstream_state(1).errors
    assert errors == ({} if times == 1 else {("Metadata", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION): 3})


def test_the_software_of_each_client_is_known() -> None:
    proxy = VirtualProxy()
    for name in ("shop", "till"):
        client = proxy.client(name)
        client.call(ApiVersionsRequest(client_software_name=name, client_software_version="1"), 3)
        assert client.connection.ctx.session.client_software == (name, "1")


def test_a_changed_response_is_read() -> None:
    proxy = proxy_with_topic()
    client = proxy.client()
    assert [topic.name for topic in client.call(METADATA, 9).topics] == ["t"]
    proxy.topic("u")
    assert [topic.name for topic in client.call(METADATA, 9).topics] == ["t", "u"]


def test_other_versions_of_the_proxy_are_sent() -> None:
    def versions(client: Client) -> dict[int, int]:
        return {api.api_key: api.max_version for api in client.call(VERSIONS, 3).api_keys}

    proxy = VirtualProxy()
    client = proxy.client()
    assert versions(client)[ApiKey.PRODUCE] > 9
    proxy.cluster_server.upgrade(1, {**proxy.broker.served, ApiKey.PRODUCE: (3, 9)})
    assert versions(client)[ApiKey.PRODUCE] == 9


def test_each_listener_has_its_own_addresses() -> None:
    listeners = "listeners=PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0"
    proxy = VirtualProxy(listeners, "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT")
    for listener in (0, 1, 0, 1):
        brokers = proxy.client(listener=listener).call(METADATA, 9).brokers
        assert [broker.port for broker in brokers] == [proxy.server.endpoints[listener].port]


def test_a_broker_without_a_port_is_named_as_soon_as_it_has_one() -> None:
    proxy = VirtualProxy(upstream=VirtualBroker("sluice.brokers=2"))
    known = proxy.cluster.brokers.pop(2)
    client = proxy.client()
    for _ in range(2):
        assert [broker.node_id for broker in client.call(METADATA, 9).brokers] == [1]
    proxy.cluster.brokers[2] = known
    assert [broker.node_id for broker in client.call(METADATA, 9).brokers] == [1, 2]


def test_kept_responses_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_responses, "_MOST_BYTES", 2_000)
    proxy = proxy_with_topic()
    client = proxy.client()
    kept = proxy.server.exchange._repeated  # type: ignore[attr-defined]  # of a ForwardingExchange
    for number in range(40):
        proxy.topic(f"topic-{number}")
        client.call(METADATA, 9)
        assert kept._bytes == sum(len(key[-1]) + sent.size for key, sent in kept._responses.items())
        assert kept._bytes <= 2_000 or len(kept._responses) == 1
