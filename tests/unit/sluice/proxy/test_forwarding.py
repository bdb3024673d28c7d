"""Requests through a proxy: order, faults, quotas, the ends of connections, the journal."""

import pytest

from sluice.journal_events import Request
from sluice.protocol.apis import ApiKey
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.errors import ErrorCode
from sluice.proxy.upstream.forwarded_route import ForwardedRoute
from tests.support.records import batch, fetch, produce
from tests.support.virtual_broker import JOURNAL, Client
from tests.support.virtual_proxy import VirtualProxy


@pytest.fixture
def proxy() -> VirtualProxy:
    proxy = VirtualProxy(JOURNAL)
    proxy.upstream.topic()
    return proxy


@pytest.fixture
def client(proxy: VirtualProxy) -> Client:
    return proxy.client()


def requests_of(proxy: VirtualProxy) -> list[Request]:
    return [event for event in proxy.journal.events() if isinstance(event, Request)]


def test_requests_of_one_read_are_forwarded_together_and_answered_in_order(client: Client, proxy: VirtualProxy) -> None:
    client.send_together(*[(produce(9), 9)] * 20, (fetch(0), 11), (MetadataRequest(topics=None), 9))
    responses = client.take_responses()
    assert [response.correlation_id for response in responses] == list(range(1, 23))
    assert [response.api for response in responses] == ["Produce"] * 20 + ["Fetch", "Metadata"]
    assert proxy.upstream.partition().log.log_end_offset == 20
    assert [event.api for event in requests_of(proxy)] == [response.api for response in responses]


def test_metadata_names_the_proxy(client: Client, proxy: VirtualProxy) -> None:
    brokers = client.call(MetadataRequest(topics=[]), 9).brokers
    endpoint = proxy.server.endpoints[0]
    assert [(broker.node_id, broker.host, broker.port) for broker in brokers] == [(1, endpoint.host, endpoint.port)]
    coordinator = client.call(FindCoordinatorRequest(coordinator_keys=["g"]), 4).coordinators[0]
    assert (coordinator.node_id, coordinator.port) == (1, endpoint.port)


def test_api_versions_are_those_of_the_upstream(client: Client, proxy: VirtualProxy) -> None:
    assert client.call(ApiVersionsRequest(), 0) == proxy.upstream.client().call(ApiVersionsRequest(), 0)


def test_an_unknown_version_of_api_versions_gets_version_0(client: Client, proxy: VirtualProxy) -> None:
    client._in_flight[1] = 18, 0
    response = client.call(ApiVersionsRequest(), 0)
    assert response.error_code == 0
    frame = bytearray(client.frame(ApiVersionsRequest(), 4, answered_in=0))
    frame[7] = 99
    client.send_bytes(bytes(frame))
    assert client.response().message.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert len(requests_of(proxy)) == 2


def test_acks_0_is_forwarded_without_a_response(client: Client, proxy: VirtualProxy) -> None:
    client.send_together((produce(9, acks=0), 9), (produce(9), 9))
    assert [response.correlation_id for response in client.take_responses()] == [2]
    assert proxy.upstream.partition().log.log_end_offset == 2


def test_a_sent_request_is_not_kept(client: Client) -> None:
    client.call(produce(9, batch(b"x" * 1_000_000)), 9)
    route = client.connection.ctx.route
    assert isinstance(route, ForwardedRoute)
    assert route._view.nbytes == 0
    assert not isinstance(route._last, ProduceRequest)


def test_requests_before_the_connection_is_made_wait(proxy: VirtualProxy) -> None:
    proxy.connector.delay_ms = 50
    client = proxy.client()
    client.send_together((produce(9), 9), (produce(9), 9))
    assert client.responses == []
    proxy.advance(50)
    assert len(client.take_responses()) == 2


def test_a_client_is_closed_if_the_upstream_refuses(proxy: VirtualProxy) -> None:
    proxy.connector.refuses = True
    client = proxy.client()
    client.send(produce(9), 9)
    assert not client.is_open
    assert client.responses == []


@pytest.mark.parametrize("error", [None, ConnectionResetError()])
def test_a_client_is_closed_with_the_upstream_connection(
    client: Client, proxy: VirtualProxy, error: Exception | None
) -> None:
    client.call(produce(9), 9)
    proxy.connector.transports[0].end(error)
    proxy.settle()
    assert not client.is_open
    assert client.transport.aborted is (error is not None)


def test_a_half_closed_client_gets_all_its_responses(proxy: VirtualProxy) -> None:
    proxy.connector.delay_ms = 50
    client = proxy.client()
    client.send_together((produce(9), 9), (produce(9), 9))
    client.end()
    assert client.is_open
    proxy.advance(50)
    assert len(client.take_responses()) == 2
    assert not client.is_open


def test_a_reset_client_resets_the_upstream_connection(client: Client, proxy: VirtualProxy) -> None:
    client.call(produce(9), 9)
    client.leave()
    (transport,) = proxy.connector.transports
    assert transport.was_reset


def test_unanswered_requests_are_in_the_journal(client: Client, proxy: VirtualProxy) -> None:
    wait = fetch(0, max_wait_ms=5_000, min_bytes=1)
    client.send_together((wait, 11), (wait, 11))
    client.leave()
    assert [(event.api, event.answered_ns) for event in requests_of(proxy)] == [("Fetch", None)] * 2


def test_a_client_that_does_not_read_stops_the_upstream_connection(client: Client, proxy: VirtualProxy) -> None:
    for _ in range(40):
        client.send(produce(9, batch(b"x" * 5_000)), 9)
    client.take_responses()
    client.stop_reading()
    client.send_together(*[(fetch(0), 11)] * 3)

    def reads() -> bool:
        return proxy.connector.transports[0].reading

    assert not reads()
    client.read_on()
    proxy.advance(1)
    assert reads()
    assert len(client.take_responses()) == 3


def test_an_upgrade_of_the_upstream_changes_the_served_versions(client: Client, proxy: VirtualProxy) -> None:
    client.call(produce(9), 9)
    proxy.cluster_server.upgrade(1, {ApiKey.API_VERSIONS: (0, 4), ApiKey.METADATA: (0, 5)})
    served = {api.api_key: api.max_version for api in client.call(ApiVersionsRequest(), 0).api_keys}
    own = {ApiKey.SASL_HANDSHAKE: 1, ApiKey.SASL_AUTHENTICATE: 2}
    assert served == {ApiKey.API_VERSIONS: 4, ApiKey.METADATA: 5} | own
