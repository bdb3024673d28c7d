"""SASL authentication before requests reach the exchange: states, failures, session lifetimes, and user quotas."""

import logging
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sluice.broker.network.authenticator import _NEXT, SaslAuthenticator, State
from sluice.broker.network.connection import Connection
from sluice.journal_events import Request
from sluice.protocol.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.list_offsets import ListOffsetsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support.records import produce_of
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
from tests.support.virtual_broker import JOURNAL, WALL_START_MS, Client, VirtualBroker

DELAY_MS = 100  # connection.failed.authentication.delay.ms
SCRAM_FAILED = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
)


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return message, listener, mechanism and reason of each warning."""
    names = ("listener", "mechanism", "reason")
    return [
        {"message": record.getMessage()} | {name: vars(record)[name] for name in names if name in vars(record)}
        for record in caplog.records
        if record.levelno >= logging.WARNING
    ]


def counts(broker: VirtualBroker) -> dict[str, int]:
    """Return the authentication counters that are not 0."""
    (listener,) = broker.server.channel_builders
    return {name: count for name, count in vars(listener.authentications).items() if count}


def of_version(client: Client, request: Message, version: int) -> bytes:
    """Return a request of version 0 whose header has another version, which need not exist."""
    data = client.frame(request, 0)
    return data[:6] + version.to_bytes(2) + data[8:]


@pytest.fixture
def broker() -> VirtualBroker:
    return VirtualBroker(*SASL)


def rejection(broker: VirtualBroker, client: Client) -> Any:
    """Return the response of a rejected client, and check the delay before response and close."""
    assert (client.responses, client.is_open) == ([], True)
    broker.advance(DELAY_MS - 1)
    assert (client.responses, client.is_open) == ([], True)
    broker.advance(1)
    assert not client.is_open
    return client.response().message


# -- successful authentication -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_plain_needs_one_token(client: Client, broker: VirtualBroker, version: int) -> None:
    assert handshake(client).mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    response = authenticate(client, plain(), version)
    assert (response.error_code, response.auth_bytes, response.session_lifetime_ms) == (0, b"", 0)
    assert isinstance(client.connection, Connection)
    assert (client.connection.ctx.session.user, client.connection.ctx.session.principal) == ("alice", "User:alice")
    assert client.call(MetadataRequest(topics=[]), 9).brokers
    assert counts(broker) == {"successful": 1} | ({"successful_no_reauth": 1} if version == 0 else {})


@pytest.mark.parametrize(("mechanism", "hash_name"), [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")])
def test_scram_needs_two_rounds(client: Client, mechanism: str, hash_name: str) -> None:
    handshake(client, mechanism)
    scram = ScramClient(hash_name, "bob", "bob-secret")
    final = scram.final(authenticate(client, scram.first).auth_bytes)
    assert authenticate(client, final).auth_bytes == scram.signature
    assert client.connection.ctx.session.user == "bob"


def test_oauthbearer_session_lasts_as_long_as_the_token() -> None:
    broker = VirtualBroker(*SASL, ALL_MECHANISMS)
    client = broker.client()
    handshake(client, "OAUTHBEARER")
    expires_s = WALL_START_MS / 1000 + 60
    response = authenticate(client, bearer(token({"sub": "carol", "exp": expires_s})))
    assert (client.connection.ctx.session.user, response.session_lifetime_ms) == ("carol", 60_000)


def test_old_clients_send_tokens_without_headers(client: Client, broker: VirtualBroker) -> None:
    handshake(client, "SCRAM-SHA-512", version=0)
    received: list[bytes] = []
    client.on_bytes, take = received.append, client.on_bytes
    scram = ScramClient("sha512", "alice", "alice-secret")
    client.send_bytes(len(scram.first).to_bytes(4) + scram.first)
    server_first = received.pop()
    assert int.from_bytes(server_first[:4]) == len(server_first) - 4
    final = scram.final(server_first[4:])
    client.send_bytes(len(final).to_bytes(4) + final)
    assert received.pop()[4:] == scram.signature
    client.on_bytes = take
    assert client.call(MetadataRequest(topics=[]), 1).brokers
    assert counts(broker) == {"successful": 1, "successful_no_reauth": 1}


def test_empty_token_is_returned_with_its_size(client: Client) -> None:
    handshake(client, version=0)
    received: list[bytes] = []
    client.on_bytes = received.append
    client.send_bytes(len(plain()).to_bytes(4) + plain())
    assert received == [bytes(4)]


def test_requests_can_be_pipelined_during_authentication(client: Client) -> None:
    client.send_together(
        (ApiVersionsRequest(), 0),
        (SaslHandshakeRequest(mechanism="PLAIN"), 1),
        (SaslAuthenticateRequest(auth_bytes=plain()), 1),
        (MetadataRequest(topics=[]), 9),
    )
    assert [response.api for response in client.take_responses()] == [
        "ApiVersions",
        "SaslHandshake",
        "SaslAuthenticate",
        "Metadata",
    ]


def test_api_versions_can_be_retried_until_it_succeeds(client: Client) -> None:
    client.send_bytes(of_version(client, ApiVersionsRequest(), 99))
    assert client.response().message.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert client.call(ApiVersionsRequest(client_software_name="?"), 3).error_code == ErrorCode.INVALID_REQUEST
    assert client.call(ApiVersionsRequest(), 2).error_code == 0
    assert handshake(client).error_code == 0


def test_sasl_requests_after_authentication_are_an_illegal_state() -> None:
    client = logged_in(VirtualBroker(*SASL))
    assert handshake(client).error_code == ErrorCode.ILLEGAL_SASL_STATE
    response = authenticate(client, plain())
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert response.error_message == "SaslAuthenticate request received after successful authentication"
    assert client.is_open


def test_authenticated_client_uses_the_exchange_directly(broker: VirtualBroker) -> None:
    client = logged_in(broker)
    assert client.connection.request_handler is broker.server.exchange


def test_request_size_is_limited_before_authentication() -> None:
    broker = VirtualBroker(*SASL, "sasl.server.max.receive.size=1000")
    client = broker.client()
    client.send_bytes((1001).to_bytes(4))
    assert not client.is_open
    broker.topic()
    client = logged_in(broker)
    assert client.call(produce_of(5000, 9, "client"), 9).responses


def test_size_error_names_the_property(caplog: pytest.LogCaptureFixture) -> None:
    VirtualBroker(*SASL).client().send_bytes((600_000).to_bytes(4))
    assert lines(caplog) == [
        {
            "message": "connection closed",
            "reason": "invalid frame size 600000; expected 0 to 524288 bytes (sasl.server.max.receive.size)",
        }
    ]


def test_token_size_is_limited_during_reauthentication() -> None:
    broker = VirtualBroker(*SASL, "connections.max.reauth.ms=5000", "sasl.server.max.receive.size=1000")
    client = short_session(broker)
    broker.advance(3000)
    handshake(client)
    client.send_bytes((1001).to_bytes(4))
    assert not client.is_open


def test_message_with_a_long_authorization_id_is_cut() -> None:
    broker = VirtualBroker(*SASL, ALL_MECHANISMS)
    client = broker.client()
    handshake(client, "OAUTHBEARER")
    compact = token({"sub": "carol", "exp": WALL_START_MS / 1000 + 2})
    client.send(SaslAuthenticateRequest(auth_bytes=bearer(compact, "b" * 40_000)), 1)
    response = rejection(broker, client)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message.startswith("Authentication failed: Client requested an authorization id (bbb")


# -- failed authentication ---------------------------------------------------------------------------------------------


FAILURES = {
    "wrong password": (
        "PLAIN",
        [plain(password="wrong")],
        "Authentication failed: Invalid username or password",
        "Authentication failed: Invalid username or password",
    ),
    "unknown user": (
        "SCRAM-SHA-256",
        [ScramClient("sha256", "carol", "x").first],
        SCRAM_FAILED,
        "Authentication failed: Invalid user credentials",
    ),
    "expired token": (
        "OAUTHBEARER",
        [bearer(token({"sub": "carol", "exp": 1})), b"\x01"],
        '{"status":"invalid_token"}',
        "invalid_token: expired (exp)",
    ),
}


@pytest.mark.parametrize(("mechanism", "tokens", "error_message", "reason"), FAILURES.values(), ids=FAILURES)
def test_failure_is_returned_after_the_delay_and_the_connection_closed(
    mechanism: str, tokens: list[bytes], error_message: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    broker = VirtualBroker(*SASL, ALL_MECHANISMS)
    client = broker.client()
    handshake(client, mechanism)
    for before in tokens[:-1]:
        authenticate(client, before)
    client.send(SaslAuthenticateRequest(auth_bytes=tokens[-1]), 2)
    expected = {
        "message": "authentication failed",
        "listener": "SASL_PLAINTEXT",
        "mechanism": mechanism,
        "reason": reason,
    }
    assert lines(caplog) == [expected], "failures are logged immediately"
    response = rejection(broker, client)
    assert (response.error_code, response.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, error_message)
    assert (len(caplog.records), counts(broker)) == (1, {"failed": 1})


def test_wrong_scram_password_has_the_message_of_an_unknown_user(client: Client, broker: VirtualBroker) -> None:
    handshake(client, "SCRAM-SHA-256")
    scram = ScramClient("sha256", "alice", "wrong")
    final = scram.final(authenticate(client, scram.first).auth_bytes)
    client.send(SaslAuthenticateRequest(auth_bytes=final), 2)
    assert rejection(broker, client).error_message == SCRAM_FAILED


def test_disabled_mechanism_is_rejected_with_the_enabled_ones(caplog: pytest.LogCaptureFixture) -> None:
    broker = VirtualBroker(*SASL)
    client = broker.client()
    client.send(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    response = rejection(broker, client)
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    (line,) = lines(caplog)
    assert (line["mechanism"], line["reason"]) == (
        "GSSAPI",
        "SASL mechanism not enabled; expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
    )


def test_rejected_token_without_headers_has_no_response(caplog: pytest.LogCaptureFixture) -> None:
    broker = VirtualBroker(*SASL)
    client = broker.client()
    handshake(client, version=0)
    client.send_bytes(len(plain("x")).to_bytes(4) + plain("x"))
    broker.advance(DELAY_MS)
    assert (client.responses, client.is_open, len(lines(caplog))) == ([], False, 1)


def test_failure_delay_can_be_disabled() -> None:
    broker = VirtualBroker(*SASL, "connection.failed.authentication.delay.ms=0")
    client = broker.client()
    handshake(client)
    client.send(SaslAuthenticateRequest(auth_bytes=plain("x")), 2)
    assert (client.response().message.error_code, client.is_open) == (ErrorCode.SASL_AUTHENTICATION_FAILED, False)


def test_requests_after_a_failure_are_not_read(caplog: pytest.LogCaptureFixture) -> None:
    broker = VirtualBroker(*SASL)
    client = broker.client()
    handshake(client)
    wrong, right = (SaslAuthenticateRequest(auth_bytes=plain(password=word)) for word in ("wrong", "alice-secret"))
    client.send_together((wrong, 2), (right, 2), (MetadataRequest(topics=[]), 9))
    rejection(broker, client)
    assert len(lines(caplog)) == 1


def test_rejected_client_that_disconnects_is_removed(client: Client, broker: VirtualBroker) -> None:
    handshake(client)
    waiting = len(broker.broker.scheduler)
    client.send(SaslAuthenticateRequest(auth_bytes=plain("x")), 2)
    assert len(broker.broker.scheduler) == waiting + 1
    client.leave()
    assert (len(broker.broker.scheduler), broker.server.connections) == (waiting, {})


@pytest.mark.parametrize("leaves", [True, False], ids=["leaves before the response", "stays"])
def test_rejected_request_of_a_client_that_leaves_is_recorded_without_a_response(leaves: bool) -> None:
    broker = VirtualBroker(*SASL, JOURNAL)
    client = broker.client()
    handshake(client)
    client.send(SaslAuthenticateRequest(auth_bytes=plain("x")), 2)
    if leaves:
        client.leave()
    broker.advance(DELAY_MS)
    (rejected,) = [
        event for event in broker.journal.events() if isinstance(event, Request) and event.api == "SaslAuthenticate"
    ]
    assert (rejected.answered_ns is None, rejected.response_bytes == 0) == (leaves, leaves)


OTHER_REQUESTS = {
    "request other than SASL": ([], MetadataRequest(topics=[]), 9, "Metadata"),
    "token without a handshake": ([], SaslAuthenticateRequest(auth_bytes=plain()), 1, "SaslAuthenticate"),
    "ApiVersions twice": ([(ApiVersionsRequest(), 0)], ApiVersionsRequest(), 0, "ApiVersions"),
    "request after ApiVersions": ([(ApiVersionsRequest(), 0)], MetadataRequest(topics=[]), 9, "Metadata"),
}


@pytest.mark.parametrize(("first", "request_", "version", "name"), OTHER_REQUESTS.values(), ids=OTHER_REQUESTS)
def test_other_request_before_authentication_closes_the_connection(
    first: list[Any], request_: Any, version: int, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = VirtualBroker(*SASL).client()
    for before in first:
        client.call(*before)
    client.send(request_, version)
    assert (client.responses, client.is_open) == ([], False)
    reason = f"{name} before SASL authentication; check the client's security.protocol"
    assert lines(caplog) == [{"message": "connection closed", "reason": reason}]


def test_request_of_one_byte_closes_the_connection(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    client.send_bytes(b"\0\0\0\1\0")
    assert not client.is_open
    assert len(lines(caplog)) == 1


@pytest.mark.parametrize(
    ("request_", "version"),
    [(ApiVersionsRequest(), 0), (SaslHandshakeRequest(mechanism="PLAIN"), 1), (FindCoordinatorRequest(key="g"), 2)],
    ids=["ApiVersions", "SaslHandshake", "FindCoordinator"],
)
def test_other_request_during_authentication_is_an_illegal_state(request_: Any, version: int) -> None:
    broker = VirtualBroker(*SASL)
    client = broker.client()
    handshake(client)
    client.send(request_, version)
    assert rejection(broker, client).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert counts(broker) == {"failed": 1}


def test_ignored_oauthbearer_failure_is_logged_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    broker = VirtualBroker(*SASL, ALL_MECHANISMS)
    client = broker.client()
    handshake(client, "OAUTHBEARER")
    assert authenticate(client, bearer(token({"sub": "carol", "exp": 1}))).auth_bytes
    client.send(ApiVersionsRequest(), 0)
    rejection(broker, client)
    assert lines(caplog)[0]["reason"] == (
        "expected SaslAuthenticate, got ApiVersions after invalid_token: expired (exp)"
    )


@pytest.mark.parametrize(
    ("request_", "version"),
    [(ListOffsetsRequest(), 0), (FindCoordinatorRequest(), 99)],
    ids=["response without a top-level error", "unsupported version"],
)
def test_rejected_request_without_an_error_field_has_no_response(
    request_: Any, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    broker = VirtualBroker(*SASL)
    client = broker.client()
    handshake(client)
    client.send_bytes(of_version(client, request_, version))
    broker.advance(DELAY_MS)
    assert (client.responses, client.is_open, len(lines(caplog))) == ([], False, 1)


# -- sessions ----------------------------------------------------------------------------------------------------------


def short_session(broker: VirtualBroker, user: str = "alice") -> Client:
    client = broker.client()
    handshake(client)
    response = authenticate(client, plain(user, f"{user}-secret"))
    assert response.session_lifetime_ms == 5000
    return client


def test_expired_session_closes_the_connection_on_the_next_request(caplog: pytest.LogCaptureFixture) -> None:
    broker = VirtualBroker(*SASL, "connections.max.reauth.ms=5000")
    client = short_session(broker)
    broker.advance(5000)
    assert client.call(MetadataRequest(topics=[]), 9).brokers
    broker.advance(1)
    assert client.is_open
    client.send(MetadataRequest(topics=[]), 9)
    assert (client.responses, client.is_open) == ([], False)
    assert [line["reason"][:20] for line in lines(caplog)] == ["SASL session expired"]
    assert counts(broker) == {"successful": 1, "expired_connections_killed": 1}


def test_client_that_reauthenticates_keeps_its_connection() -> None:
    broker = VirtualBroker(*SASL, "connections.max.reauth.ms=5000")
    client = short_session(broker)
    for _ in range(3):
        broker.advance(6000)  # after the session expired
        assert handshake(client).error_code == 0
        assert authenticate(client, plain()).session_lifetime_ms == 5000
        assert client.call(MetadataRequest(topics=[]), 9).brokers
    assert counts(broker) == {"successful": 1, "successful_again": 3}


def test_session_ends_with_its_token() -> None:
    broker = VirtualBroker(*SASL, ALL_MECHANISMS, "connections.max.reauth.ms=5000")
    client = broker.client()
    handshake(client, "OAUTHBEARER")
    auth_bytes = bearer(token({"sub": "carol", "exp": WALL_START_MS / 1000 + 2}))
    assert authenticate(client, auth_bytes).session_lifetime_ms == 2000


def test_session_lifetime_can_be_set_per_mechanism() -> None:
    prefix = "listener.name.sasl_plaintext.scram-sha-256."
    broker = VirtualBroker(*SASL, "connections.max.reauth.ms=5000", f"{prefix}connections.max.reauth.ms=7000")
    short_session(broker)
    client = broker.client()
    handshake(client, "SCRAM-SHA-256")
    scram = ScramClient("sha256", "alice", "alice-secret")
    first = authenticate(client, scram.first)
    assert first.session_lifetime_ms == 0
    assert authenticate(client, scram.final(first.auth_bytes)).session_lifetime_ms == 7000


def test_reauthentication_cannot_change_the_principal() -> None:
    broker = VirtualBroker(*SASL, "connections.max.reauth.ms=5000")
    client = short_session(broker)
    broker.advance(3000)
    handshake(client)
    client.send(SaslAuthenticateRequest(auth_bytes=plain("bob", "bob-secret")), 2)
    response = rejection(broker, client)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert counts(broker) == {"successful": 1, "failed_again": 1}


def test_reauthentication_cannot_change_the_mechanism(caplog: pytest.LogCaptureFixture) -> None:
    broker = VirtualBroker(*SASL, "connections.max.reauth.ms=5000")
    client = short_session(broker)
    broker.advance(3000)
    assert handshake(client, "SCRAM-SHA-256").error_code == 0, (
        "the mechanism is checked with the first token, as in Kafka"
    )
    client.send(SaslAuthenticateRequest(auth_bytes=plain()), 2)
    broker.advance(DELAY_MS)
    assert (client.responses, client.is_open) == ([], False)
    assert [line["reason"] for line in lines(caplog)] == ["re-authentication with another mechanism"]


def test_reauthentication_with_a_disabled_mechanism_is_rejected() -> None:
    broker = VirtualBroker(*SASL, "connections.max.reauth.ms=5000")
    client = short_session(broker)
    broker.advance(3000)
    client.send(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert rejection(broker, client).error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert counts(broker) == {"successful": 1, "failed_again": 1}


def test_failed_reauthentication_has_its_own_message() -> None:
    broker = VirtualBroker(*SASL, "connections.max.reauth.ms=5000")
    client = broker.client()
    handshake(client, "SCRAM-SHA-256")
    scram = ScramClient("sha256", "alice", "alice-secret")
    authenticate(client, scram.final(authenticate(client, scram.first).auth_bytes))
    broker.advance(3000)
    handshake(client, "SCRAM-SHA-256")
    client.send(SaslAuthenticateRequest(auth_bytes=b"?"), 2)
    assert rejection(broker, client).error_message == SCRAM_FAILED.replace("during auth", "during re-auth")


def test_reauthentication_is_limited_to_once_per_second() -> None:
    broker = VirtualBroker(*SASL, "connections.max.reauth.ms=5000")
    client = short_session(broker)
    handshake(client)
    authenticate(client, plain())
    broker.advance(999)
    assert handshake(client).error_code == ErrorCode.ILLEGAL_SASL_STATE
    broker.advance(1)
    assert handshake(client).error_code == 0


# -- users -------------------------------------------------------------------------------------------------------------


def test_user_quota_is_shared_by_the_clients_of_the_user(broker: VirtualBroker) -> None:
    broker.topic()
    entity = [EntityData(entity_type="user", entity_name="alice")]
    entry = EntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=1000.0)])
    assert logged_in(broker, "bob").call(AlterClientQuotasRequest(entries=[entry]), 1).entries[0].error_code == 0

    def throttle_ms(user: str, client_id: str) -> int:
        client = logged_in(broker, user, client_id)
        client.send(produce_of(8_000, 9, client_id), 9)
        return client.response().throttle_time_ms

    assert throttle_ms("alice", "one") == 0, "a new quota allows ten seconds' worth of bytes"
    assert throttle_ms("alice", "two") == 6000, "alice's clients share the quota: 16,000 bytes exceed it by 6 s"
    assert throttle_ms("bob", "one") == 0, "bob has no quota"


# -- state table -------------------------------------------------------------------------------------------------------


def test_every_state_except_failed_has_a_transition() -> None:
    assert {state for state, _ in _NEXT} == set(State) - {State.FAILED}
    assert set(_NEXT.values()) == set(State) - {State.INITIAL_REQUEST}


class Exchanges(RuleBasedStateMachine):
    """Random sequences of requests: no client is authenticated without a valid password."""

    def __init__(self) -> None:
        super().__init__()
        self.broker = VirtualBroker(*SASL, "connections.max.reauth.ms=5000")
        self.client = self.broker.client()
        self.client.on_bytes = lambda data: None
        self.sent_password = False
        self.chose_plain = False

    def send(self, request: Any, version: int) -> None:
        self.client.send(request, version)

    @rule(version=st.sampled_from([0, 3, 99]))
    def send_api_versions(self, version: int) -> None:
        self.client.send_bytes(of_version(self.client, ApiVersionsRequest(), version))

    @rule(mechanism=st.sampled_from(["PLAIN", "SCRAM-SHA-256", "GSSAPI"]), version=st.integers(0, 1))
    def send_handshake(self, mechanism: str, version: int) -> None:
        self.chose_plain |= mechanism == "PLAIN"
        self.send(SaslHandshakeRequest(mechanism=mechanism), version)

    @rule(data=st.sampled_from([plain(), plain("bob", "bob-secret"), plain("x"), b""]), headers=st.booleans())
    def send_token(self, data: bytes, headers: bool) -> None:
        self.sent_password |= self.chose_plain and b"secret" in data
        if headers:
            self.send(SaslAuthenticateRequest(auth_bytes=data), 1)
        else:
            self.client.send_bytes(len(data).to_bytes(4) + data)

    @rule()
    def send_metadata(self) -> None:
        self.send(MetadataRequest(topics=[]), 9)

    @rule(ms=st.sampled_from([50, 1000, 6000]))
    def wait(self, ms: int) -> None:
        self.broker.advance(ms)

    @rule()
    def reconnect(self) -> None:
        self.client.leave()
        self.__init__()  # type: ignore[misc]  # restarts with a new connection

    @invariant()
    def no_client_is_authenticated_without_a_password(self) -> None:
        user = self.client.connection.ctx.session.user
        assert user == "ANONYMOUS" or (self.sent_password and user in ("alice", "bob"))

    @invariant()
    def failed_connection_is_closed_after_the_delay(self) -> None:
        sasl = self.client.connection.ctx.session.authentication
        assert isinstance(sasl, SaslAuthenticator)
        if sasl.state is State.FAILED:
            self.broker.advance(DELAY_MS)
            assert not self.client.is_open

    def teardown(self) -> None:
        self.client.leave()
        assert self.broker.server.connections == {}


Exchanges.TestCase.settings = settings(max_examples=settings().max_examples // 4, stateful_step_count=12)
TestExchanges = Exchanges.TestCase
