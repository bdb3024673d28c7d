"""SASL at the proxy: ended there, begun anew towards the upstream broker, and passed through."""

from collections.abc import Callable

import pytest

from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import BlackHole
from sluice.broker.faults.rule import Rule
from sluice.client.network.sasl import conversations
from sluice.journal_events import Request
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest
from sluice.protocol.errors import ErrorCode
from sluice.proxy.sasl import observer
from sluice.proxy.upstream.connection import UpstreamConnection
from tests.support.records import fetch, produce
from tests.support.sasl import (
    ALL_MECHANISMS,
    SASL,
    ScramClient,
    authenticate,
    bearer,
    handshake,
    logged_in,
    plain,
    token,
)
from tests.support.virtual_broker import JOURNAL, Client, VirtualBroker
from tests.support.virtual_proxy import VirtualProxy

FAILURE_DELAY_MS = 100  # connection.failed.authentication.delay.ms
SESSION_MS = 10_000
REAUTHENTICATES = f"connections.max.reauth.ms={SESSION_MS}"
METADATA = MetadataRequest(topics=[])


def as_client(mechanism: str = "PLAIN", user: str = "bob", password: str = "bob-secret") -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'Module required username="{user}" password="{password}";',
    }


def secured(*properties: str) -> VirtualBroker:
    """Return an upstream broker that demands SASL."""
    broker = VirtualBroker(*SASL, ALL_MECHANISMS, JOURNAL, *properties)
    broker.topic()
    return broker


def users(broker: VirtualBroker) -> set[str]:
    """Return the users of requests other than those of SASL."""
    events = [event for event in broker.journal.events() if isinstance(event, Request)]
    return {event.principal for event in events if not event.api.startswith("Sasl")}


def apis(broker: VirtualBroker) -> list[str]:
    return [event.api for event in broker.journal.events() if isinstance(event, Request)]


def passing(*properties: str) -> VirtualProxy:
    """Return a proxy whose clients authenticate with the upstream broker."""
    return VirtualProxy(JOURNAL, upstream=secured(*properties), properties=as_client(), passes_sasl=True)


# -- ended at the proxy ------------------------------------------------------------------------------------------------


@pytest.fixture
def ending() -> VirtualProxy:
    return VirtualProxy(*SASL, ALL_MECHANISMS, JOURNAL, upstream=secured(), properties=as_client())


def test_clients_authenticate_with_the_proxy_and_the_proxy_with_the_broker(ending: VirtualProxy) -> None:
    client = logged_in(ending, "alice")
    assert client.call(METADATA, 9).brokers
    assert users(ending) == {"User:alice"}
    assert users(ending.upstream) == {"User:bob"}
    assert apis(ending.upstream) == ["SaslHandshake", "SaslAuthenticate", "Metadata"]


def test_no_request_is_forwarded_before_the_authentication(ending: VirtualProxy) -> None:
    client = ending.client()
    versions = client.call(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
    client.send(METADATA, 9)
    assert not client.is_open
    assert ending.connector.transports == []
    upstream = ending.upstream.client().call(
        ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4
    )
    assert versions == upstream


def test_wrong_password_is_refused_by_the_proxy(ending: VirtualProxy) -> None:
    client = ending.client()
    handshake(client)
    client.send(SaslAuthenticateRequest(auth_bytes=plain("alice", "wrong")), 2)
    ending.advance(FAILURE_DELAY_MS)
    assert client.response().message.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not client.is_open
    assert ending.connector.transports == []


def test_a_response_of_the_proxy_does_not_overtake_forwarded_ones() -> None:
    proxy = VirtualProxy(*SASL, JOURNAL, REAUTHENTICATES, upstream=secured(), properties=as_client())
    client = logged_in(proxy, "alice")
    client.send_together(
        (fetch(0, max_wait_ms=50, min_bytes=1), 11),
        (SaslHandshakeRequest(mechanism="PLAIN"), 1),
        (SaslAuthenticateRequest(auth_bytes=plain()), 2),
        (METADATA, 9),
    )
    assert client.responses == []
    proxy.advance(50)
    received = [response.api for response in client.take_responses()]
    assert received == ["Fetch", "SaslHandshake", "SaslAuthenticate", "Metadata"]


def test_a_listener_without_sasl_refuses_an_authentication() -> None:
    proxy = VirtualProxy(JOURNAL, upstream=secured(), properties=as_client())
    client = proxy.client()
    assert handshake(client).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert authenticate(client, plain()).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.call(METADATA, 9).brokers
    assert users(proxy.upstream) == {"User:bob"}


# -- begun anew --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_proxy_authenticates_itself(mechanism: str) -> None:
    proxy = VirtualProxy(upstream=secured(), properties=as_client(mechanism))
    client = proxy.client()
    client.send_together((produce(9), 9), (produce(9), 9), (METADATA, 9))
    assert [response.api for response in client.take_responses()] == ["Produce", "Produce", "Metadata"]
    assert users(proxy.upstream) == {"User:bob"}


REFUSED = {
    "wrong password": (as_client(password="wrong"), "Authentication failed"),
    "mechanism": (as_client("SCRAM-SHA-256"), "does not accept SCRAM-SHA-256; expected one of PLAIN"),
}


@pytest.mark.parametrize(("properties", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_refused_proxy_ends_its_clients_and_logs_it_once(
    properties: dict[str, str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    upstream = VirtualBroker(*SASL, "sasl.enabled.mechanisms=PLAIN")
    proxy = VirtualProxy(upstream=upstream, properties=properties)
    for _ in range(3):
        client = proxy.client()
        client.send(METADATA, 9)
        proxy.advance(FAILURE_DELAY_MS)
        assert not client.is_open
    (line,) = [record for record in caplog.records if record.name == "sluice.proxy"]
    assert (line.getMessage(), vars(line)["broker"]) == ("upstream broker unreachable", 1)
    assert reason in vars(line)["reason"]


@pytest.mark.parametrize("api", ["SaslHandshake", "SaslAuthenticate"])
def test_an_error_of_another_kind_ends_the_client(api: str, caplog: pytest.LogCaptureFixture) -> None:
    upstream = secured()
    upstream.cluster_server.faults.add(Rule(Error("UNKNOWN_SERVER_ERROR"), api=api))
    client = VirtualProxy(upstream=upstream, properties=as_client()).client()
    client.send(METADATA, 9)
    upstream.advance(FAILURE_DELAY_MS)
    assert not client.is_open
    lines = [record.getMessage() for record in caplog.records if record.name == "sluice.proxy"]
    assert lines == ["upstream broker unreachable"]


def handshakes(broker: VirtualBroker) -> int:
    return apis(broker).count("SaslHandshake")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_the_proxy_authenticates_itself_again_between_two_requests(mechanism: str) -> None:
    proxy = VirtualProxy(upstream=secured(REAUTHENTICATES), properties=as_client(mechanism))
    client = proxy.client()
    for second in range(60):
        assert client.call(METADATA, 9).brokers, f"after {second} s"
        proxy.advance(1000)
    assert len(proxy.connector.transports) == 1
    assert handshakes(proxy.upstream) == 1 + 60 // 9


def test_an_idle_connection_authenticates_itself_with_the_next_request() -> None:
    proxy = VirtualProxy(upstream=secured(REAUTHENTICATES), properties=as_client())
    client = proxy.client()
    client.call(METADATA, 9)
    proxy.advance(10 * SESSION_MS)
    assert handshakes(proxy.upstream) == 1
    client.send_together((produce(9, acks=0), 9), (produce(9), 9), (METADATA, 9))
    assert [response.api for response in client.take_responses()] == ["Produce", "Metadata"]
    assert handshakes(proxy.upstream) == 2
    assert proxy.upstream.partition().log.log_end_offset == 2


def test_an_authentication_waits_for_requests_in_flight() -> None:
    proxy = VirtualProxy(upstream=secured(REAUTHENTICATES), properties=as_client())
    client = proxy.client()
    client.call(METADATA, 9)
    proxy.advance(0.84 * SESSION_MS)
    client.send(fetch(0, max_wait_ms=500, min_bytes=1), 11)
    proxy.advance(300)
    client.send_together((produce(9), 9), (METADATA, 9))
    assert (client.responses, handshakes(proxy.upstream)) == ([], 1)
    proxy.advance(200)
    assert [response.api for response in client.take_responses()] == ["Fetch", "Produce", "Metadata"]
    assert apis(proxy.upstream)[-5:] == ["Fetch", "SaslHandshake", "SaslAuthenticate", "Produce", "Metadata"]


@pytest.mark.parametrize(("connect_ms", "authenticate_ms"), [(50, 0), (0, 50)])
def test_requests_of_a_client_that_has_left_are_sent_after_the_authentication(
    connect_ms: int, authenticate_ms: int
) -> None:
    proxy = VirtualProxy(upstream=secured(), properties=as_client())
    proxy.connector.delay_ms = connect_ms
    proxy.upstream.cluster_server.faults.add(Rule(Delay(authenticate_ms), api="SaslAuthenticate"))
    client = proxy.client()
    client.send(produce(9, acks=0), 9)
    client.end()
    assert not client.is_open
    proxy.advance(50)
    assert proxy.upstream.partition().log.log_end_offset == 1
    (transport,) = proxy.connector.transports
    assert transport.is_closing()


def test_an_authentication_for_a_client_that_has_left_ends_without_an_answer() -> None:
    proxy = VirtualProxy(upstream=secured(), properties=as_client())
    proxy.upstream.cluster_server.faults.add(Rule(BlackHole(), api="SaslAuthenticate"))
    client = proxy.client()
    client.send(produce(9, acks=0), 9)
    client.end()
    (transport,) = proxy.connector.transports
    proxy.advance(29_000)
    assert not transport.is_closing()
    proxy.advance(1_000)
    assert transport.is_closing()


def test_a_client_is_closed_if_the_proxy_cannot_authenticate_again() -> None:
    proxy = VirtualProxy(upstream=secured(REAUTHENTICATES), properties=as_client())
    client = proxy.client()
    client.call(METADATA, 9)
    connection: UpstreamConnection = client.connection.ctx.upstream  # type: ignore[attr-defined]
    assert connection._authentication is not None
    connection._authentication._new_conversation = conversations("PLAIN", {"username": "bob", "password": "changed"})
    proxy.advance(SESSION_MS)
    client.send(METADATA, 9)
    proxy.advance(FAILURE_DELAY_MS)
    assert (client.responses, client.is_open) == ([], False)


# -- passed through ----------------------------------------------------------------------------------------------------


def by_plain(client: Client) -> None:
    assert handshake(client).error_code == 0
    assert authenticate(client, plain()).error_code == 0


def by_scram(client: Client) -> None:
    scram = ScramClient("sha512", "alice", "alice-secret")
    handshake(client, "SCRAM-SHA-512")
    assert authenticate(client, scram.final(authenticate(client, scram.first).auth_bytes)).error_code == 0


def by_bearer(client: Client) -> None:
    handshake(client, "OAUTHBEARER")
    assert authenticate(client, bearer(token({"sub": "alice", "exp": 9e9}))).error_code == 0


def exchange_tokens(client: Client, mechanism: str, *tokens: bytes) -> list[bytes]:
    """Send tokens without headers; return those of the broker."""
    assert handshake(client, mechanism, version=0).error_code == 0
    received: list[bytes] = []
    client.on_bytes, take = received.append, client.on_bytes
    for each in tokens:
        client.send_bytes(len(each).to_bytes(4) + each)
    client.on_bytes = take
    assert all(int.from_bytes(each[:4]) == len(each) - 4 for each in received)
    return [each[4:] for each in received]


def by_plain_without_headers(client: Client) -> None:
    assert exchange_tokens(client, "PLAIN", plain()) == [b""]


def by_scram_without_headers(client: Client) -> None:
    scram = ScramClient("sha256", "alice", "alice-secret")
    assert handshake(client, "SCRAM-SHA-256", version=0).error_code == 0
    received: list[bytes] = []
    client.on_bytes, take = received.append, client.on_bytes
    client.send_bytes(len(scram.first).to_bytes(4) + scram.first)
    final = scram.final(received.pop()[4:])
    client.send_bytes(len(final).to_bytes(4) + final)
    client.on_bytes = take
    assert received.pop()[4:] == scram.signature


EXCHANGES = [by_plain, by_scram, by_bearer, by_plain_without_headers, by_scram_without_headers]


@pytest.fixture
def proxy() -> VirtualProxy:
    return passing()


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_the_user_of_a_passed_authentication_is_known(exchange: Callable[[Client], None], proxy: VirtualProxy) -> None:
    client = proxy.client()
    exchange(client)
    client.call(METADATA, 9)
    proxies, brokers = (
        [event for event in broker.journal.events() if isinstance(event, Request)][-1]
        for broker in (proxy, proxy.upstream)
    )
    assert (proxies.api, proxies.principal, brokers.principal) == ("Metadata", "User:alice", "User:alice")
    assert not client.connection.ctx.upstream.passes_tokens  # type: ignore[attr-defined]


def test_a_token_may_follow_its_handshake_at_once() -> None:
    client = passing().client()
    token = plain()
    client.on_bytes = len
    client.send_bytes(client.frame(SaslHandshakeRequest(mechanism="PLAIN"), 0) + len(token).to_bytes(4) + token)
    assert client.is_open
    assert client.connection.ctx.session.user == "alice"


def test_a_fault_rule_for_a_user_acts_on_a_passed_authentication(proxy: VirtualProxy) -> None:
    proxy.cluster_server.faults.add(
        {"principal": "User:alice", "action": {"kind": "error", "code": 7}, "api": "FindCoordinator"}
    )
    alice, anonymous = proxy.client(), passing().client()
    request = FindCoordinatorRequest(key="g")
    by_plain(alice)
    assert alice.call(request, 3).error_code == ErrorCode.REQUEST_TIMED_OUT
    by_plain(anonymous)
    assert anonymous.call(request, 3).error_code != ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("version", [0, 1])
def test_a_mechanism_that_the_proxy_cannot_read_passes(
    version: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(observer._MECHANISMS, "PLAIN")
    proxy = passing()
    for _ in range(2):
        client = proxy.client()
        (by_plain, by_plain_without_headers)[1 - version](client)
        client.call(METADATA, 9)
    assert users(proxy) == {"User:ANONYMOUS"}
    lines = [record.getMessage() for record in caplog.records if record.name == "sluice.proxy"]
    assert [line[:26] for line in lines] == ["a client's user is unknown"]


def test_a_refused_client_gets_the_brokers_response_and_its_delay(proxy: VirtualProxy) -> None:
    client = proxy.client()
    handshake(client)
    client.send(SaslAuthenticateRequest(auth_bytes=plain("alice", "wrong")), 2)
    proxy.advance(FAILURE_DELAY_MS - 1)
    assert (client.responses, client.is_open) == ([], True)
    proxy.advance(1)
    assert client.response().message.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not client.is_open
    assert client.connection.ctx.session.user == "ANONYMOUS"


def test_a_refused_client_without_headers_is_closed(proxy: VirtualProxy) -> None:
    client = proxy.client()
    assert exchange_tokens(client, "PLAIN", plain("alice", "wrong")) == []
    proxy.advance(FAILURE_DELAY_MS)
    assert not client.is_open


def test_a_refused_mechanism_is_the_brokers_response() -> None:
    proxy = passing("sasl.enabled.mechanisms=PLAIN")
    client = proxy.client()
    client.send(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    proxy.advance(FAILURE_DELAY_MS)
    response = client.response().message
    assert (response.error_code, response.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN"])


def test_a_client_authenticates_again_through_the_proxy() -> None:
    proxy = passing(REAUTHENTICATES)
    client = proxy.client()
    by_plain(client)
    for _ in range(3):
        proxy.advance(SESSION_MS - 1000)
        client.send(fetch(0, max_wait_ms=500, min_bytes=1), 11)
        client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        proxy.advance(500)
        assert [response.api for response in client.take_responses()] == ["Fetch", "SaslHandshake"]
        assert authenticate(client, plain()).session_lifetime_ms == SESSION_MS
        assert client.call(METADATA, 9).brokers
    assert users(proxy) == {"User:alice"}
    proxy.advance(SESSION_MS + 1)
    client.send(METADATA, 9)
    assert not client.is_open


def test_the_proxy_does_not_authenticate_itself_for_clients(proxy: VirtualProxy) -> None:
    client = proxy.client()
    client.send(METADATA, 9)
    assert not client.is_open
    assert "SaslHandshake" not in apis(proxy.upstream)


@pytest.mark.parametrize(("at", "reached"), [("handshake", []), ("authenticate", ["SaslHandshake"])])
def test_an_authentication_that_passes_can_be_stalled(at: str, reached: list[str], proxy: VirtualProxy) -> None:
    fault = proxy.cluster_server.faults.add({"action": {"kind": "stall-sasl", "at": at}})
    client = proxy.client()
    client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    client.send(SaslAuthenticateRequest(auth_bytes=plain()), 2)
    assert apis(proxy.upstream) == reached
    fault.remove()
    proxy.settle()
    assert [response.api for response in client.take_responses()] == ["SaslHandshake", "SaslAuthenticate"]
    assert client.connection.ctx.session.user == "alice"
    assert fault.hits == 1
